// Copies between device arrays and the host: `copy_to_host` and `copy_from_host`.
#pragma once

#include "arrays/array_object.hpp"

namespace bascule::python {

/// Copies the values to a NumPy array: `out`, or a new one if it is None. Waits for the copy, except for pinned `out`
/// with a stream. Throws: ArgumentError, CudaError.
pybind11::object copy_to_host(const pybind11::object& array, const pybind11::object& out,
                              const pybind11::object& stream);

/// Fills the array with host values of the same shape and dtype, without waiting. Throws: ArgumentError, CudaError.
void copy_from_host(const pybind11::object& array, const pybind11::object& values,
                    const pybind11::object& stream);

}  // namespace bascule::python
