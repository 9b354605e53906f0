// Python and NumPy numbers as the interface's scalars.
#pragma once

#include <optional>

#include <pybind11/pybind11.h>

#include <bascule/interface/arguments/argument.hpp>

namespace bascule::python {

/// Whether it is an instance of numpy.generic: numbers, and numpy.void.
bool is_numpy_scalar(PyObject* object);

/// A Python or NumPy scalar; nothing for anything else. Throws: what the object's own conversion raises.
std::optional<Scalar> read_scalar(PyObject* object);

/// A tuple of scalars; nothing where an element is not a scalar.
std::optional<ScalarTuple> read_tuple(PyObject* tuple);

}  // namespace bascule::python
