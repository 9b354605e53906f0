// The Python class bascule.DeviceArray, put together from its parts, and the functions that make arrays.
#pragma once

#include <pybind11/pybind11.h>

namespace bascule::python {

void bind_arrays(pybind11::module_& module);

}  // namespace bascule::python
