// DeviceArrays as DLPack tensors: `__dlpack__` and `__dlpack_device__`.
#pragma once

#include <cstdint>
#include <vector>

#include <bascule/interface/arrays/dlpack.hpp>

#include "arrays/array_object.hpp"
#include "support/pybind.hpp"

namespace bascule::python {

/// The DLPack device of the array. The emulated device is a CUDA device, as a GPU is: a library that passes
/// the array on need not know, and one that dereferences it gets an error from the driver.
dlpack::DeviceId dlpack_device(const ArrayObject& array);

/// The array's fields without the extents. Raises: BufferError when DLPack cannot describe the array.
dlpack::Tensor tensor_without_extents(const ArrayObject& array);

/// Later work on `reader` comes after the array's; the host does not wait. Needs the GIL.
void make_wait_for(const ArrayObject& array, StreamRef reader);

/// The extents that go with it: the shape, then the strides in elements.
std::vector<std::int64_t> extents_of(const ArrayView& view);

}  // namespace bascule::python
