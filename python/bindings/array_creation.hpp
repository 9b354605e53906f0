// New arrays in device memory: `to_device` and `device_array`.
#pragma once

#include <memory>

#include "array_object.hpp"

namespace bascule::python {

/// A new array with undefined contents on the current device, bound to `stream` (None: the default stream).
/// Throws: ArgumentError, CudaError.
ArrayObject allocate(const Dimensions& shape, DType dtype, std::shared_ptr<const StructLayout> layout,
                     bool fortran, const pybind11::object& stream);

void bind_array_creation(pybind11::module_& module);

}  // namespace bascule::python
