// The arithmetic of a texture unit: fixed-point coordinates, 8-bit weights, and sums with a few more bits than the texels.
// The programming guide says little about it ("Linear Filtering": 9 bits with 8 of fraction); the rest is what an H100
// does, as recorded by tests/gpu/textures.py.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "memory/images.hpp"

namespace emulated::machine {

/// Along one axis: the first of the two texels that are mixed, and the weight of the second in 1/256.
struct Mix {
    std::int64_t texel = 0;
    std::uint32_t share = 0;
};

/// Converts a coordinate on an axis of `extent` texels. NaN is 0. Coordinates far outside stay outside, or are 0 after
/// wrapping.
Mix mix_at(double coordinate, bool normalized, std::uint32_t extent) noexcept;
std::int64_t texel_at(double coordinate, bool normalized, std::uint32_t extent) noexcept;

/// The weights of eight texels in 1/256, x fastest. Their sum is 256.
using Shares = std::array<std::uint32_t, 8>;
Shares shares_of(std::uint32_t x, std::uint32_t y, std::uint32_t z) noexcept;

/// One channel of a texel, with its weight.
struct Part {
    double number;         ///< for floating-point texels
    std::int32_t integer;  ///< for integer texels
    std::uint32_t share;
};
using Parts = std::span<const Part>;

/// The weighted sum of the texels of one or two slices; `next` may be empty.
double mixed_floats(Parts slice, Parts next) noexcept;
double mixed_halves(Parts slice, Parts next) noexcept;
/// The same for integers of 8 or 16 bits that are promoted to a number in [0, 1] or [-1, 1].
double mixed_integers(Parts slice, Parts next, const memory::TexelFormat& format) noexcept;

/// Converts an sRGB texel to linear light, by the hardware's table with 8 significant bits.
double linear_of_srgb(std::uint8_t texel) noexcept;

}  // namespace emulated::machine
