// The value inside a bascule.Kernel.
#pragma once

#include <bascule/runtime/kernels/kernel.hpp>

namespace bascule::python {

/// bascule.Kernel.
struct KernelObject {
    Kernel kernel;
};

}  // namespace bascule::python
