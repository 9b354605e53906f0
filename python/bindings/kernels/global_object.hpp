// `get_global` of bascule.Kernel and bascule.Module: variables of device code as arrays.
#pragma once

#include <pybind11/pybind11.h>

namespace bascule::python {

/// Adds the methods; after bind_kernels and bind_arrays.
void bind_globals(pybind11::module_& module);

}  // namespace bascule::python
