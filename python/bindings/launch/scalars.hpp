// Numbers of Python, NumPy and ctypes as the interface's values.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <bascule/interface/arguments/argument.hpp>

#include "support/pybind.hpp"

namespace bascule::python {

/// Whether it is an instance of numpy.generic: numbers, and numpy.void.
bool is_numpy_scalar(PyObject* object);

/// A Python or NumPy scalar; nothing for anything else. Throws: what the object's own conversion raises.
std::optional<Scalar> read_scalar(PyObject* object);

/// Reads an element of a tuple that is not a number: an array or an address. Nothing for other objects.
using ElementReader = std::function<std::optional<TupleArgument::Element>(PyObject*)>;

/// The values of a tuple, a list or a host array of one dimension or more, and of such sequences in it. Nothing where an
/// element is neither a number nor such a sequence nor what `read_other` reads, and where there are more than a kernel's
/// parameters can have; then `unread` says which: "a list whose element [2][0] is an object of type str".
std::optional<TupleArgument> read_tuple(PyObject* sequence, const ElementReader& read_other,
                                        std::string& unread);

/// c_int and its like as a number of exactly that type, c_void_p as an address; nothing for other objects, and for
/// numbers of ctypes that devices do not have (c_longdouble).
std::optional<ArgumentValue> read_ctypes_number(PyObject* object);

}  // namespace bascule::python
