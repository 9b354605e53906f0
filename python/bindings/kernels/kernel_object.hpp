// bascule.Kernel and bascule.Module.
#pragma once

#include <pybind11/pybind11.h>

#include "kernels/kernel_value.hpp"

namespace bascule::python {

void bind_kernels(pybind11::module_& module);

}  // namespace bascule::python
