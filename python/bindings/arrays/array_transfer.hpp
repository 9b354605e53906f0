// Copies between device arrays and the host: `copy_to_host` and `copy_from_host`.
#pragma once

#include "arrays/array_object.hpp"

namespace bascule::python {

/// Copies the values to a NumPy array: `out`, or a new one if it is None. Waits for the copy, except for pinned `out`
/// with a stream. Throws: ArgumentError, CudaError.
py::object copy_to_host(const py::object& array, const py::object& out, const py::object& stream);

/// Fills the array with host values of the same shape and dtype, without waiting. Throws: ArgumentError, CudaError.
void copy_from_host(const py::object& array, const py::object& values, const py::object& stream);

}  // namespace bascule::python
