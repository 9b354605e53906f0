// numpy.dtype from and to DType and StructLayout; bascule.struct.
#pragma once

#include <memory>

#include <pybind11/pybind11.h>

#include <bascule/interface/types/struct_layout.hpp>

namespace bascule::python {

/// The module numpy. Throws: ImportError.
pybind11::object numpy();

/// The element type of a numpy.dtype: from its typestr, with its ml_dtypes format. Throws:
/// ArgumentError for elements that have no type on a device.
DType dtype_of(const pybind11::object& dtype);

/// The layout of a numpy.dtype; null where it has no fields, and where they overlap or are out of order.
std::shared_ptr<const StructLayout> numpy_layout(const pybind11::object& dtype);

/// The numpy.dtype of an element type; ml_dtypes' own for a format, or bytes where it is not installed.
pybind11::object numpy_dtype(DType dtype);
/// The numpy.dtype of a layout.
pybind11::object structured_dtype(const StructLayout& layout);

}  // namespace bascule::python
