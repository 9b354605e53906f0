// DeviceArrays as DLPack tensors: `__dlpack__` and `__dlpack_device__`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <pybind11/pybind11.h>

#include <bascule/interface/arrays/dlpack.hpp>

#include "arrays/array_object.hpp"

namespace bascule::python {

/// Raises bascule's ArgumentBufferError, a BufferError: what DLPack asks for where data cannot be exchanged.
[[noreturn]] void raise_buffer_error(const std::string& message);

/// Where the array lies, for whoever takes it. The emulated device is a CUDA device to everybody, as a GPU
/// would be: who passes the array on need not know, and who dereferences it is told by the driver.
dlpack::DeviceId dlpack_device(const ArrayObject& array);

/// The array's fields without the extents. Raises: BufferError when DLPack cannot say what the array is.
dlpack::Tensor tensor_without_extents(const ArrayObject& array);

/// The extents that go with it: the shape, then the strides in elements.
std::vector<std::int64_t> extents_of(const ArrayView& view);

/// `__dlpack__`, `__dlpack_device__` and the exchange table of the class.
void bind_dlpack(pybind11::class_<ArrayObject>& type);

}  // namespace bascule::python
