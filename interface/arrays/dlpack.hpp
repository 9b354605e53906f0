// Converts between DLPack tensors and array views, as values.
#pragma once

#include <span>

#include <bascule/interface/arrays/dlpack_abi.h>
#include <bascule/interface/arrays/plain_array.hpp>

namespace bascule::dlpack {

using Version = BasculeDLVersion;
using DeviceId = BasculeDLDevice;
using DataType = BasculeDLDataType;
using Tensor = BasculeDLTensor;
using Managed = BasculeDLManaged;
using ManagedVersioned = BasculeDLManagedVersioned;
using ExchangeHeader = BasculeDLExchangeHeader;
using ExchangeTable = BasculeDLExchange;

inline constexpr Version version{BASCULE_DL_MAJOR, BASCULE_DL_MINOR};

/// The traits of the elements of a tensor. They equal those of a parameter with the same elements. Types that are not
/// numbers give traits that no parameter has.
constexpr PlainTraits traits_of(DataType type) noexcept {
    return type.code | PlainTraits{type.bits} << 8 | PlainTraits{type.lanes} << 16;
}

/// Reads address and size of a tensor whose elements are numbers with the traits in `array`. Returns false unless the tensor
/// has at least one dimension and one element, is contiguous in C order, and has no overflow in its sizes. Does not check
/// whether the elements reach beyond the end of the address space. Writes the extents to `shape` unless it is null.
inline bool read_plain_elements(const Tensor& tensor, PlainArray& array, Dimensions* shape) noexcept {
    if (tensor.data == nullptr || tensor.ndim < 1 || tensor.ndim > max_dimensions || tensor.shape == nullptr)
        return false;
    if (shape != nullptr) shape->resize(tensor.ndim);
    std::int64_t elements = 1;
    for (std::int32_t d = tensor.ndim - 1; d >= 0; --d) {
        const std::int64_t extent = tensor.shape[d];
        if (extent < 1 || (tensor.strides != nullptr && tensor.strides[d] != elements) ||
            __builtin_mul_overflow(elements, extent, &elements)) {
            return false;
        }
        if (shape != nullptr) (*shape)[d] = extent;
    }
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(elements, std::int64_t{plain_itemsize(array.traits)}, &bytes) ||
        __builtin_add_overflow(reinterpret_cast<std::uintptr_t>(tensor.data), tensor.byte_offset,
                               &array.pointer)) {
        return false;
    }
    array.bytes = static_cast<std::uint64_t>(bytes);
    return true;
}

/// The tensor as a validated array, writable and without a stream, because a tensor has no read-only flag and names no
/// stream. The caller checks `device` and the kind of memory. Throws: ArgumentError (type, value, not_supported) whose
/// message names the field.
ArrayView view_of(const Tensor& tensor);

/// The element type, or nothing if no array can have it. Throws: nothing.
std::optional<DType> dtype_of(DataType type) noexcept;

/// The DLPack type of an element type; nothing for types that DLPack lacks, such as structures, times and opaque bytes.
/// Throws: nothing.
std::optional<DataType> data_type_of(DType dtype) noexcept;

/// Why an array cannot be a tensor, as the rest of a sentence that begins with "the array"; empty if it can.
std::string why_not_a_tensor(const ArrayView& view);

/// Writes the strides in elements to `out`, which has one entry for each axis. The array must be one that can be a
/// tensor.
void element_strides(const ArrayView& view, std::span<std::int64_t> out) noexcept;

/// "CUDA device 0", "host memory", "pinned host memory", "a device of DLPack type 10 (number 0)".
std::string to_string(DeviceId device);

/// True for memory that a kernel can reach: on a CUDA device, pinned or managed.
constexpr bool is_cuda(DeviceId device) noexcept {
    return device.type == BASCULE_DL_CUDA || device.type == BASCULE_DL_CUDA_HOST ||
           device.type == BASCULE_DL_CUDA_MANAGED;
}

}  // namespace bascule::dlpack
