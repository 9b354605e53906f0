// Exports DeviceArrays as DLPack tensors: `__dlpack__` and `__dlpack_device__`.
#pragma once

#include <cstdint>
#include <vector>

#include <bascule/interface/arrays/dlpack.hpp>

#include "arrays/array_object.hpp"

namespace bascule::python {

/// The DLPack device of the array. The emulated device is a CUDA device, like a GPU: libraries can pass its arrays on,
/// and the driver reports an error if they use the memory.
dlpack::DeviceId dlpack_device(const ArrayObject& array);

/// The tensor without its extents. Raises: BufferError if DLPack cannot describe the array.
dlpack::Tensor tensor_without_extents(const ArrayObject& array);

/// Makes later work on `reader` wait for all work enqueued so far on the array's stream; the host does not wait. Needs
/// the GIL.
void make_wait_for(const ArrayObject& array, StreamRef reader);

/// The extents for the tensor: the shape, then the strides in elements.
std::vector<std::int64_t> extents_of(const ArrayView& view);

}  // namespace bascule::python
