// Conversions between NumPy and the interface's values: dtypes, shapes, host arrays; bascule.struct; and NumPy's rule of
// casting.
#pragma once

#include <memory>

#include <bascule/interface/arrays/array_interface.hpp>
#include <bascule/interface/types/struct_layout.hpp>

#include "support/pybind.hpp"

namespace bascule::python {

/// The module numpy. Throws: ImportError.
pybind11::object numpy();

/// `numpy.dtype(given)`; names of ml_dtypes' types are found where that is installed. Throws: ArgumentError for what is
/// not a dtype.
pybind11::object to_dtype(const pybind11::object& given);

/// The element type of a numpy.dtype: from its typestr, with its ml_dtypes format. Throws:
/// ArgumentError for elements that have no type on a device.
DType dtype_of(const pybind11::object& dtype);

/// The numpy.dtype of a ctypes structure, with the fields of its bases; its pointers are 64-bit integers.
/// `numpy.dtype(type)` knows neither. Throws: ArgumentError for bit-fields.
pybind11::object ctypes_dtype(const pybind11::handle& type);

/// The layout of a numpy.dtype; null where it has no fields, and where they overlap or are out of order.
std::shared_ptr<const StructLayout> numpy_layout(const pybind11::object& dtype);

/// The numpy.dtype of an element type; ml_dtypes' own for a format, or bytes where it is not installed.
pybind11::object numpy_dtype(DType dtype);
/// The numpy.dtype of a layout.
pybind11::object structured_dtype(const StructLayout& layout);

pybind11::tuple to_tuple(const Dimensions& dimensions);

/// Integers, or what has `__index__`, of a tuple or list. `field` is their name in messages. Throws:
/// ArgumentError for anything else, for numbers beyond 64 bits, and for more than 64 of them.
Dimensions to_integers(const pybind11::object& numbers, const char* field);

/// The shape of a new array: an integer, or a tuple or list of integers, none negative. Throws:
/// ArgumentError.
Dimensions to_shape(const pybind11::object& shape);

/// The numpy.dtype of an array's elements, with the fields of its layout.
pybind11::object numpy_dtype(const ArrayView& view);

/// What is written to opaque elements (dtype "V12"), as an array of that dtype: a structured or opaque array
/// whose elements have that size, or a structured scalar or bytes that are all of `shape`. Without it NumPy
/// would truncate or pad them. Lists and the like are returned as they are, and so is everything for another
/// dtype. Throws: ArgumentError for another size.
pybind11::object as_opaque(const pybind11::object& values, const pybind11::object& dtype,
                           const Dimensions& shape);

/// Where the elements of a host NumPy array begin.
void* host_address_of(const pybind11::object& array);

/// A host NumPy array's fields by the rules of the device interface: the two share them. Throws:
/// ArgumentError.
ArrayView host_view(const pybind11::object& array);

/// Throws: ArgumentError (type) when both dtypes are of numbers and numpy.can_cast(from, to, "same_kind") is false.
void require_same_kind(const pybind11::object& from, const pybind11::object& to);

/// Host values as a NumPy array of that dtype, by the same rule; integers that are not in an array are checked
/// against the dtype's range instead, so that 7 fits uint8. An array is returned as it is for a dtype that is
/// not of numbers. Throws: ArgumentError (type); OverflowError.
pybind11::object cast_values(const pybind11::object& values, const pybind11::object& dtype);

}  // namespace bascule::python
