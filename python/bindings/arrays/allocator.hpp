// `bascule.set_allocator`: device memory from RMM, CuPy's pool, cuda.core, or functions of the user's own.
#pragma once

#include <cstddef>
#include <memory>

#include <pybind11/pybind11.h>

#include <bascule/runtime/memory/memory.hpp>

namespace bascule::python {

/// Device memory from the allocator that is set, else from the device's pool. It is given back by the buffer's end:
/// to the allocator that gave it, in the order of `stream`, a bascule.Stream that is kept until then.
/// Throws: CudaError; the allocator's own exception; ArgumentError for what it returned.
std::shared_ptr<DeviceBuffer> allocate_device(std::size_t bytes, Device device,
                                              const pybind11::object& stream);

}  // namespace bascule::python
