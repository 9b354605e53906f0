// Tensor maps: the 128 bytes from which a kernel's tensor copies learn the layout of an array and the shape of a tile. They
// are opaque to programs, so the layout here is not that of a GPU.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "memory/memory.hpp"
#include "memory/tensor_element.hpp"

namespace emulated::memory {

/// A description of an array and of a tile. Dimension 0 is the innermost. The values may be invalid; `why_invalid` says so.
struct TensorMap {
    static constexpr std::size_t bytes = 128;
    static constexpr std::uint64_t alignment = 64;
    static constexpr std::size_t most_dimensions = 5;

    DeviceAddress address = 0;
    std::array<std::uint64_t, 4> strides{};  ///< in bytes, of the dimensions from 1 on
    std::array<std::uint64_t, 5> extents{};  ///< in elements
    std::array<std::uint32_t, 5> box{};      ///< for a tiled map: the tile's extent in the array, in elements
    std::array<std::uint32_t, 5>
        steps{};  ///< from one element of the tile to the next, in elements of the array
    std::uint32_t rank = 0;
    std::uint32_t type = 0;        ///< a TensorElement
    std::uint32_t interleave = 0;  ///< 0: none, 1: slices of 16 bytes, 2: of 32 bytes
    std::uint32_t swizzle = 0;     ///< 0: none, 1: 32 bytes, 2: 64 bytes, 3: 128 bytes
    std::uint32_t fill = 0;        ///< for elements outside; 0: zeros, 1: NaN
    // Image to column: the corners bound the positions of a filter, as offsets from the first and the last pixel, in the
    // order width, height, depth.
    bool im2col = false;
    std::array<std::int32_t, 3> lower{}, upper{};
    std::uint32_t channels = 0, pixels = 0;  ///< of a tile

    /// Returns which rule of cuTensorMapEncodeTiled or cuTensorMapEncodeIm2col the values break, as a sentence without its
    /// end; empty if none. Values of `type` and `swizzle` that only newer GPUs support break a rule, too.
    std::string why_invalid() const;

    TensorElement element() const noexcept { return static_cast<TensorElement>(type); }
    std::uint32_t element_bytes() const noexcept;
    std::uint32_t slice_bytes() const noexcept { return interleave == 0 ? 0 : 8u << interleave; }
    std::uint32_t swizzle_bytes() const noexcept { return swizzle == 0 ? 0 : 16u << swizzle; }
    /// Elements of a tile along its innermost dimension.
    std::uint32_t row_elements() const noexcept { return im2col ? channels : box[0]; }
    /// Elements of a tile along another dimension of a tiled map.
    std::uint32_t box_elements(std::size_t dimension) const noexcept {
        return (box[dimension] + steps[dimension] - 1) / steps[dimension];
    }

    /// The 128 bytes. Fields that are too large for their place are stored as its largest value, which is invalid.
    std::array<std::byte, bytes> encode() const noexcept;
    /// Reads 128 bytes. Returns nothing if `encode` did not write them.
    static std::optional<TensorMap> decode(const std::byte* from) noexcept;
};

}  // namespace emulated::memory
