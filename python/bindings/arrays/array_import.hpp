// Imports other libraries' arrays as DeviceArrays: `as_cuda_array` and `from_cuda_array_interface`.
#pragma once

#include <optional>

#include "arrays/array_object.hpp"

namespace bascule::python {

/// A view of any object with the interface. Throws: ArgumentError; the producer's exception.
ArrayObject as_cuda_array(const py::object& object, bool sync);

/// Whether `as_cuda_array` would find a descriptor. Reads the attribute in the same way, and throws the producer's
/// exception unless it is an AttributeError.
bool is_cuda_array(const py::object& object);

/// The view, if is_cuda_array is true. Reads the attribute once. Throws: as both functions.
std::optional<ArrayObject> find_cuda_array(const py::object& object, bool sync);

}  // namespace bascule::python
