// bascule.Kernel and bascule.Module.
#pragma once

#include <pybind11/pybind11.h>

#include <bascule/runtime/kernels/kernel.hpp>

namespace bascule::python {

/// bascule.Kernel.
struct KernelObject {
    Kernel kernel;
};

void bind_kernels(pybind11::module_& module);

}  // namespace bascule::python
