// Imports other libraries' arrays as DeviceArrays: `as_cuda_array` and `from_cuda_array_interface`.
#pragma once

#include <optional>

#include "arrays/array_object.hpp"

namespace bascule::python {

/// A view of any object with the interface; empty if it has no descriptor. Reads the attribute once. Throws:
/// ArgumentError; the producer's exception, unless it is an AttributeError.
std::optional<ArrayObject> find_cuda_array(const py::object& object, bool sync);

}  // namespace bascule::python
