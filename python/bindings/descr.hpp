// Structured dtypes: between NumPy's `descr` and StructLayout.
#pragma once

#include <memory>
#include <string_view>

#include <pybind11/pybind11.h>

#include <bascule/interface/struct_layout.hpp>

namespace bascule::python {

/// The `descr` of an array interface, for elements of this typestr; null where it names no fields. Throws:
/// ArgumentError (type for what is no list of tuples, value for one that contradicts the typestr).
std::shared_ptr<const StructLayout> read_descr(PyObject* descr, std::string_view typestr);

/// The layout of a numpy.dtype; null where it has no fields, and where they overlap or are out of order.
std::shared_ptr<const StructLayout> numpy_layout(const pybind11::object& dtype);

/// The numpy.dtype of a layout.
pybind11::object structured_dtype(const StructLayout& layout);

}  // namespace bascule::python
