// Other libraries' arrays as DeviceArrays: `as_cuda_array` and `from_cuda_array_interface`.
#pragma once

#include <optional>

#include "arrays/array_object.hpp"

namespace bascule::python {

/// A view of any object with the interface. Throws: ArgumentError; the producer's own exception.
ArrayObject as_cuda_array(const pybind11::object& object, bool sync);

/// Whether `as_cuda_array` would find a descriptor to read. Reads the attribute as it does: an exception of
/// the producer's other than AttributeError comes out.
bool is_cuda_array(const pybind11::object& object);

/// That view, where is_cuda_array says yes: the attribute is read once. Throws: as both.
std::optional<ArrayObject> find_cuda_array(const pybind11::object& object, bool sync);

}  // namespace bascule::python
