// Conversions between NumPy and the interface's values: dtypes, shapes, host arrays. Also bascule.struct and NumPy's
// casting rule.
#pragma once

#include <memory>

#include <bascule/interface/arrays/array_interface.hpp>
#include <bascule/interface/types/struct_layout.hpp>

#include "support/pybind.hpp"

namespace bascule::python {

/// The module numpy. Throws: ImportError.
py::object numpy();

/// `numpy.dtype(given)`. Also accepts names of ml_dtypes' types if that is installed. Throws: ArgumentError if it is
/// not a dtype.
py::object to_dtype(const py::object& given);

/// The element type of a numpy.dtype, including its ml_dtypes format. Throws: ArgumentError for element types that
/// devices do not support.
DType dtype_of(const py::object& dtype);

/// The numpy.dtype of a ctypes structure, with the fields of its bases and pointers as 64-bit integers, neither of
/// which `numpy.dtype(type)` supports. Throws: ArgumentError for bit-fields.
py::object ctypes_dtype(const py::handle& type);

/// The layout of a numpy.dtype; null if it has no fields, or if they overlap or are out of order.
std::shared_ptr<const StructLayout> numpy_layout(const py::object& dtype);

/// The numpy.dtype of an element type; for a small format ml_dtypes' dtype, or bytes if that is not installed.
py::object numpy_dtype(DType dtype);
/// The numpy.dtype of a layout.
py::object structured_dtype(const StructLayout& layout);

py::tuple to_tuple(const Dimensions& dimensions);

/// Converts a tuple or list of integers, or of objects with `__index__`. `field` is its name in messages. Throws:
/// ArgumentError for other objects, for numbers beyond 64 bits, and for more than 64 of them.
Dimensions to_integers(const py::object& numbers, const char* field);

/// The shape of a new array: an integer, or a tuple or list of integers, none negative. Throws: ArgumentError.
Dimensions to_shape(const py::object& shape);

/// The numpy.dtype of an array's elements, with the fields of its layout.
py::object numpy_dtype(const ArrayView& view);

/// Converts values for opaque elements (dtype "V12") to an array of that dtype: a structured or opaque array whose
/// elements have that size, or a structured scalar or bytes that cover all of `shape`. Otherwise NumPy would truncate
/// or pad them. Returns lists and similar objects unchanged, and all values if the dtype is not opaque. Throws:
/// ArgumentError for another size.
py::object as_opaque(const py::object& values, const py::object& dtype, const Dimensions& shape);

/// The address of the first element of a host NumPy array.
void* host_address_of(const py::object& array);

/// A view of a host NumPy array, checked by the rules of the device interface, which uses the same fields. Throws:
/// ArgumentError.
ArrayView host_view(const py::object& array);

/// Throws: ArgumentError (type) if both dtypes are numeric and numpy.can_cast(from, to, "same_kind") is false.
void require_same_kind(const py::object& from, const py::object& to);

/// Converts host values to a NumPy array of that dtype by the casting rule "same_kind". Integers that are not in an
/// array are only checked against the dtype's range, so that 7 fits uint8. If the dtype is not numeric, returns an
/// array unchanged. Throws: ArgumentError (type); OverflowError.
py::object cast_values(const py::object& values, const py::object& dtype);

}  // namespace bascule::python
