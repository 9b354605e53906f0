// Converts numbers of Python, NumPy and ctypes to the interface's values.
#pragma once

#include <functional>
#include <optional>

#include <bascule/interface/arguments/argument.hpp>

#include "support/pybind.hpp"

namespace bascule::python {

/// True for an instance of numpy.generic: a number, numpy.void or another scalar.
bool is_numpy_scalar(PyObject* object);

/// Reads a Python or NumPy scalar; empty for other objects. Throws: exceptions of the object's own conversion.
std::optional<Scalar> read_scalar(PyObject* object);

/// Reads a tuple element that is not a number: an array or an address. Empty for other objects.
using ElementReader = std::function<std::optional<TupleArgument::Element>(PyObject*)>;

/// Reads the values of a tuple, a list or a host array with at least one axis, and of such sequences nested in it.
/// Empty if an element is neither a number, such a sequence, nor readable by `read_other`, if there are more elements
/// than a kernel's parameters can hold, or if they are nested too deeply; `unread` then describes it: "a list whose
/// element [2][0] is an object of type str".
std::optional<TupleArgument> read_tuple(PyObject* sequence, const ElementReader& read_other,
                                        std::string& unread);

/// Reads c_int and similar types as a number of exactly that type, and c_void_p as an address. Empty for other objects,
/// and for ctypes numbers that devices do not support (c_longdouble).
std::optional<ArgumentValue> read_ctypes_number(PyObject* object);

}  // namespace bascule::python
