// Device memory from the allocator that `bascule.set_allocator` set.
#pragma once

#include <cstddef>
#include <memory>

#include <bascule/runtime/memory/memory.hpp>

#include "support/pybind.hpp"

namespace bascule::python {

/// Allocates device memory from the allocator that is set, else from the device's pool. Destroying the buffer returns
/// the memory to the same allocator, in the order of `stream`, a bascule.Stream that is kept until then. Throws:
/// CudaError; the allocator's exception; ArgumentError for an invalid result of the allocator.
std::shared_ptr<DeviceBuffer> allocate_device(std::size_t bytes, Device device, const py::object& stream);

}  // namespace bascule::python
