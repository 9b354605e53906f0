// The arithmetic of a texture unit: coordinates in fixed point, weights of 8 bits, and sums of a few more bits than the
// texels have. The programming guide says little of it ("Linear Filtering": 9 bits with 8 of fraction); the rest is what
// an H100 does (tests/gpu/textures.py records it).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "memory/images.hpp"

namespace emulated::machine {

/// Along one axis: the first of the two texels that are mixed, and the second's share in 1/256.
struct Mix {
    std::int64_t texel = 0;
    std::uint32_t share = 0;
};

/// A coordinate of an axis of so many texels. NaN is 0; what is far outside stays outside, or is 0 after wrapping.
Mix mix_at(double coordinate, bool normalized, std::uint32_t extent) noexcept;
std::int64_t texel_at(double coordinate, bool normalized, std::uint32_t extent) noexcept;

/// Of eight texels, x fastest; each in 1/256, and together 256.
using Shares = std::array<std::uint32_t, 8>;
Shares shares_of(std::uint32_t x, std::uint32_t y, std::uint32_t z) noexcept;

/// One channel of a texel that has a share.
struct Part {
    double number;         ///< of floating-point texels
    std::int32_t integer;  ///< of others
    std::uint32_t share;
};
using Parts = std::span<const Part>;

/// The weighted sum of the texels of two slices, or of one and none.
double mixed_floats(Parts slice, Parts next) noexcept;
double mixed_halves(Parts slice, Parts next) noexcept;
/// Of integers of 8 or 16 bits that are promoted: a number in [0, 1] or [-1, 1].
double mixed_integers(Parts slice, Parts next, const memory::TexelFormat& format) noexcept;

/// What an sRGB texel is in linear light: the unit's table, which has 8 significant bits.
double linear_of_srgb(std::uint8_t texel) noexcept;

}  // namespace emulated::machine
