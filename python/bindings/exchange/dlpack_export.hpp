// DeviceArrays as DLPack tensors: `__dlpack__` and `__dlpack_device__`.
#pragma once

#include <cstdint>
#include <vector>

#include <pybind11/pybind11.h>

#include <bascule/interface/arrays/dlpack.hpp>

#include "arrays/array_object.hpp"

namespace bascule::python {

/// Where the array lies, for whoever takes it. The emulated device is a CUDA device to everybody, as a GPU
/// would be: who passes the array on need not know, and who dereferences it is told by the driver.
dlpack::DeviceId dlpack_device(const ArrayObject& array);

/// The array's fields without the extents. Raises: BufferError when DLPack cannot say what the array is.
dlpack::Tensor tensor_without_extents(const ArrayObject& array);

/// The extents that go with it: the shape, then the strides in elements.
std::vector<std::int64_t> extents_of(const ArrayView& view);

void bind_dlpack_export(pybind11::class_<ArrayObject>& type);

}  // namespace bascule::python
