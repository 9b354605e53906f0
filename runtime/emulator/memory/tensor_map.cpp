// The rules of tensor maps, from the CUDA driver API's documentation of cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col,
// and their 128 bytes.
#include "memory/tensor_map.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace emulated::memory {
namespace {

constexpr std::uint64_t most_extent = std::uint64_t{1} << 31, end_of_strides = std::uint64_t{1} << 40;
constexpr std::uint32_t most_box = 256, most_step = 8, most_channels = 256, most_pixels = 1024;
constexpr std::uint32_t element_sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

bool is_float(TensorElement element) { return element >= TensorElement::f16; }

/// The beginning of the 128 bytes; those after it are zero.
struct Stored {
    std::uint64_t mark;  ///< a digest of the other bytes
    std::uint64_t address;
    std::uint64_t strides[4];
    std::uint32_t extents[5];
    std::uint16_t box[5], channels, pixels;
    std::int16_t lower[3], upper[3];
    std::uint8_t steps[5], type, rank, interleave, swizzle, fill, im2col, unused;
};
static_assert(sizeof(Stored) <= TensorMap::bytes);

std::uint64_t digest(const std::byte* stored) {
    std::uint64_t made = 0x7465'6e73'6f72'206d;  // the digest of zeros is not zero
    for (std::size_t at = sizeof made; at < TensorMap::bytes; at += sizeof made) {
        std::uint64_t word = 0;
        std::memcpy(&word, stored + at, sizeof word);
        made = (made ^ word) * 0x9e37'79b9'7f4a'7c15;
        made ^= made >> 29;
    }
    return made;
}

template <class To, class From, std::size_t Count>
void store(To (&to)[Count], const std::array<From, Count>& from) {
    std::ranges::transform(
        from, to, [](From value) { return static_cast<To>(std::min<From>(value, static_cast<To>(~To{0}))); });
}

std::string why_sizes_are_invalid(const TensorMap& map) {
    const std::uint32_t size = map.element_bytes(), alignment = map.interleave == 2 ? 32 : 16;
    if (map.address % alignment != 0)
        return fmt::format("the address {:#x} is not a multiple of {} bytes", map.address, alignment);
    for (std::size_t d = 0; d < map.rank; ++d) {
        if (map.extents[d] == 0 || map.extents[d] > most_extent)
            return fmt::format("dimension {} has {} elements, and not 1 to 2^31", d, map.extents[d]);
        if (d > 0 && (map.strides[d - 1] % alignment != 0 || map.strides[d - 1] >= end_of_strides))
            return fmt::format("the stride of dimension {}, {} bytes, is not a multiple of {} below 2^40", d,
                               map.strides[d - 1], alignment);
        // Dimension 0 has a step only in interleaved layouts.
        if ((d > 0 || map.interleave != 0) && (map.steps[d] == 0 || map.steps[d] > most_step))
            return fmt::format("the element stride of dimension {} is {}, and not 1 to 8", d, map.steps[d]);
        if (!map.im2col && (map.box[d] == 0 || map.box[d] > most_box))
            return fmt::format("the box has {} elements in dimension {}, and not 1 to 256", map.box[d], d);
    }
    const std::uint32_t row = map.row_elements() * size;
    if (map.interleave == 0 && row % 16 != 0)
        return fmt::format("a row of the box has {} bytes, which is not a multiple of 16", row);
    if (map.interleave == 0 && map.swizzle != 0 && row > map.swizzle_bytes())
        return fmt::format("a row of the box has {} bytes, more than the swizzle's {}", row,
                           map.swizzle_bytes());
    return {};
}

std::string why_corners_are_invalid(const TensorMap& map) {
    if (map.channels == 0 || map.channels > most_channels)
        return fmt::format("a pixel of the tile has {} channels, and not 1 to 256", map.channels);
    if (map.pixels == 0 || map.pixels > most_pixels)
        return fmt::format("the tile has {} pixels, and not 1 to 1024", map.pixels);
    const std::int32_t most = map.rank == 3 ? 32767 : map.rank == 4 ? 127 : 15;
    for (std::size_t d = 0; d + 2 < map.rank; ++d) {
        for (const std::int32_t corner : {map.lower[d], map.upper[d]}) {
            if (corner < -most - 1 || corner > most)
                return fmt::format("a corner is {} in dimension {}, and not {} to {}", corner, d + 1,
                                   -most - 1, most);
        }
        if (static_cast<std::int64_t>(map.extents[d + 1]) + map.upper[d] <= map.lower[d])
            return fmt::format("the corners {} and {} leave nothing of the {} pixels in dimension {}",
                               map.lower[d], map.upper[d], map.extents[d + 1], d + 1);
    }
    return {};
}

}  // namespace

std::uint32_t TensorMap::element_bytes() const noexcept { return element_sizes[type]; }

std::string TensorMap::why_invalid() const {
    if (type >= static_cast<std::uint32_t>(TensorElement::count))
        return type < 16 ? "elements of 4 and 6 bits need compute capability 10.0"
                         : fmt::format("{} is not a data type", type);
    const std::uint32_t least = im2col || interleave != 0 ? 3 : 1;
    if (rank < least || rank > most_dimensions)
        return fmt::format("the rank is {}, and not {} to 5", rank, least);
    if (interleave > 2) return fmt::format("{} is not an interleaved layout", interleave);
    if (swizzle > 3)
        return swizzle < 7 ? "a swizzle of atoms of 32 or 64 bytes needs compute capability 10.0"
                           : fmt::format("{} is not a swizzle", swizzle);
    if (interleave == 2 && swizzle != 1) return "slices of 32 bytes need the swizzle of 32 bytes";
    if (fill > 1) return fmt::format("{} is not a way to fill", fill);
    if (fill == 1 && !is_float(element())) return "only floating-point elements can be filled with NaN";
    const std::string why = im2col ? why_corners_are_invalid(*this) : std::string();
    return why.empty() ? why_sizes_are_invalid(*this) : why;
}

std::array<std::byte, TensorMap::bytes> TensorMap::encode() const noexcept {
    Stored stored{};
    stored.address = address;
    std::ranges::copy(strides, stored.strides);
    store(stored.extents, extents);
    store(stored.box, box);
    store(stored.steps, steps);
    stored.channels = static_cast<std::uint16_t>(channels);
    stored.pixels = static_cast<std::uint16_t>(pixels);
    for (std::size_t d = 0; d < lower.size(); ++d) {
        stored.lower[d] = static_cast<std::int16_t>(lower[d]);
        stored.upper[d] = static_cast<std::int16_t>(upper[d]);
    }
    const auto byte = [](std::uint32_t value) { return static_cast<std::uint8_t>(std::min(value, 255u)); };
    stored.type = byte(type);
    stored.rank = byte(rank);
    stored.interleave = byte(interleave);
    stored.swizzle = byte(swizzle);
    stored.fill = byte(fill);
    stored.im2col = im2col ? 1 : 0;
    std::array<std::byte, bytes> made{};
    std::memcpy(made.data(), &stored, sizeof stored);
    const std::uint64_t mark = digest(made.data());
    std::memcpy(made.data(), &mark, sizeof mark);
    return made;
}

std::optional<TensorMap> TensorMap::decode(const std::byte* from) noexcept {
    Stored stored;
    std::memcpy(&stored, from, sizeof stored);
    if (stored.mark != digest(from)) return std::nullopt;
    TensorMap made;
    made.address = stored.address;
    std::ranges::copy(stored.strides, made.strides.begin());
    std::ranges::copy(stored.extents, made.extents.begin());
    std::ranges::copy(stored.box, made.box.begin());
    std::ranges::copy(stored.steps, made.steps.begin());
    std::ranges::copy(stored.lower, made.lower.begin());
    std::ranges::copy(stored.upper, made.upper.begin());
    made.channels = stored.channels;
    made.pixels = stored.pixels;
    made.type = stored.type;
    made.rank = stored.rank;
    made.interleave = stored.interleave;
    made.swizzle = stored.swizzle;
    made.fill = stored.fill;
    made.im2col = stored.im2col != 0;
    return made;
}

}  // namespace emulated::memory
