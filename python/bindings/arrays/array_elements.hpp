// Operations on the elements of a DeviceArray that run on the device: `astype`, `copy`, `fill`; and filled arrays.
#pragma once

#include "arrays/array_object.hpp"

namespace bascule::python {

/// A new array with the same elements, contiguous in C or Fortran order. The copy is enqueued on `stream` (None: the
/// current stream, else the bound stream), which the new array is bound to. Throws: CudaError, CompileError,
/// LibraryError.
ArrayObject packed(const py::object& array, bool fortran, const py::object& stream);

/// Sets every element to `value`, as converted by NumPy. Throws: ArgumentError; NumPy's exception.
void fill(const py::object& array, const py::object& value, const py::object& stream);

/// Copies the elements of `source` to `array`, broadcast and converted as in an assignment. Throws: ArgumentError if
/// that is impossible.
void copy_on_device(const py::object& array, const py::object& source, const py::object& stream);

}  // namespace bascule::python
