// DLPack's exchange table of bascule.DeviceArray, for other libraries' C code.
#pragma once

#include <pybind11/pybind11.h>

#include "arrays/array_object.hpp"

namespace bascule::python {

/// Sets `__dlpack_c_exchange_api__` of the class.
void bind_exchange_table(pybind11::class_<ArrayObject>& type);

}  // namespace bascule::python
