// Numbers of ctypes, which say their C type.
#pragma once

#include <optional>

#include <pybind11/pybind11.h>

#include <bascule/interface/arguments/argument_value.hpp>

namespace bascule::python {

/// c_int and its like as a number of exactly that type, c_void_p as an address; nothing for other objects, and for
/// numbers of ctypes that devices do not have (c_longdouble).
std::optional<ArgumentValue> read_ctypes_number(PyObject* object);

}  // namespace bascule::python
