// Numbers of Python, NumPy and ctypes as the interface's values.
#pragma once

#include <optional>
#include <string>

#include <pybind11/pybind11.h>

#include <bascule/interface/arguments/argument.hpp>

namespace bascule::python {

/// Whether it is an instance of numpy.generic: numbers, and numpy.void.
bool is_numpy_scalar(PyObject* object);

/// A Python or NumPy scalar; nothing for anything else. Throws: what the object's own conversion raises.
std::optional<Scalar> read_scalar(PyObject* object);

/// The numbers of a tuple, a list or a host array of one dimension or more, and of such sequences in it. Nothing where
/// an element is neither a number nor such a sequence, and where there are more numbers than a kernel's parameters can
/// have.
std::optional<ScalarTuple> read_tuple(PyObject* sequence);

/// "a list whose element [2][0] is an object of type str", for a tuple or list that read_tuple does not read.
std::string describe_unread(PyObject* sequence);

/// c_int and its like as a number of exactly that type, c_void_p as an address; nothing for other objects, and for
/// numbers of ctypes that devices do not have (c_longdouble).
std::optional<ArgumentValue> read_ctypes_number(PyObject* object);

}  // namespace bascule::python
