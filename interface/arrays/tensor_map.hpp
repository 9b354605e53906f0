// Tensor maps as values: how the Tensor Memory Accelerator (TMA) reads and writes boxes of an array, and the driver's rules for it.
#pragma once

#include <array>

#include <bascule/interface/arrays/array_interface.hpp>

namespace bascule {

/// The size of a CUtensorMap in bytes, and the alignment that the hardware needs; newer headers align it to 128.
inline constexpr std::uint32_t tensor_map_bytes = 128;
inline constexpr std::uint32_t tensor_map_alignment = 64;

/// The value that a load writes for elements outside of the array.
enum class TensorMapFill : std::uint8_t {
    zeros,
    nan,  ///< floating-point elements only
};

/// The corners of the pixels that an im2col load visits: an offset per spatial axis, in the array's order (D, H, W).
struct Im2col {
    Dimensions lower;  ///< from the first pixel
    Dimensions upper;  ///< from the last pixel
};

/// The layout in which a tensor map reads an array. Lists are in the array's order, outermost axis first.
struct TensorMapOptions {
    /// The elements that one instruction spans on each axis; with `im2col`, the pixels and the channels of one load.
    Dimensions box;
    Dimensions element_strides{};  ///< steps of 1 to 8 elements within the box, per axis; empty: 1
    int swizzle = 0;               ///< 32, 64 or 128 bytes; 0: none
    int interleave = 0;            ///< 16 or 32 bytes; 0: none
    int l2_promotion = 0;          ///< reads into the L2 cache of 64, 128 or 256 bytes; 0: none
    TensorMapFill fill = TensorMapFill::zeros;
    std::optional<Im2col> im2col{};  ///< of arrays of shape (N, W, C), (N, H, W, C) or (N, D, H, W, C)
};

/// The arguments of cuTensorMapEncodeTiled, or of cuTensorMapEncodeIm2col: lists begin with the innermost axis. A value type.
struct TensorMapDescription {
    static constexpr int max_rank = 5;

    int type = 0;  ///< a CUtensorMapDataType
    std::uint32_t itemsize = 0;
    bool floating = false;  ///< elements have a NaN
    int rank = 0;
    std::uint64_t address = 0;
    std::array<std::uint64_t, max_rank> extents{};
    std::array<std::uint64_t, max_rank - 1> strides{};  ///< bytes, from the second axis on
    std::array<std::uint32_t, max_rank> box{};          ///< unless `is_im2col`
    std::array<std::uint32_t, max_rank> element_strides{};
    int swizzle = 0;
    int interleave = 0;
    int l2_promotion = 0;
    TensorMapFill fill = TensorMapFill::zeros;
    bool is_im2col = false;
    std::array<int, max_rank - 2> lower{};  ///< im2col alone, as the members below; W first
    std::array<int, max_rank - 2> upper{};
    std::uint32_t channels = 0;
    std::uint32_t pixels = 0;

    bool operator==(const TensorMapDescription&) const = default;
};

/// Describes `array` in the form of the driver, which is not called; its rules are checked later. Throws:
/// ArgumentError, whose field is the wrong argument, for an array that cannot be described. A read-only array is
/// accepted, although it cannot be checked that kernels only load from it.
TensorMapDescription describe_tensor_map(const ArrayView& array, const TensorMapOptions& options);

}  // namespace bascule
