// Other libraries' arrays as DeviceArrays: `as_cuda_array` and `from_cuda_array_interface`.
#pragma once

#include <pybind11/pybind11.h>

namespace bascule::python {

void bind_array_import(pybind11::module_& module);

}  // namespace bascule::python
