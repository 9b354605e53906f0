// Floating-point formats of 16 bits and fewer: the nearest value of each, exactly.
#pragma once

#include <cstdint>
#include <optional>

#include <bascule/interface/types/dtype.hpp>

namespace bascule {

/// How a binary format writes numbers: a sign, an exponent of `exponent_bits` with the usual bias, `mantissa`
/// stored bits.
struct SmallFloat {
    int mantissa;
    int exponent_bits;
    std::uint16_t largest;                    ///< the pattern of the largest finite number
    std::optional<std::uint16_t> infinity{};  ///< formats of few bits have none
    std::optional<std::uint16_t> nan{};
};

/// float16, bfloat16 and the kinds of float8, float6 and float4 that CUDA C++ has; null for any other type.
/// float8_e8m0fnu, which holds only powers of two, is not one of them.
const SmallFloat* small_float(DType dtype) noexcept;

/// The pattern of the nearest number, ties to even; nothing for what the format does not have: numbers that
/// round beyond the largest, and infinity and NaN where there is none.
std::optional<std::uint16_t> nearest(const SmallFloat& format, double value) noexcept;

/// The number of the largest pattern: 448 for float8_e4m3fn.
double largest_number(const SmallFloat& format) noexcept;

/// float8_e8m0fnu of a power of two from 2**-127 to 2**127, or of NaN; nothing for any other number: peers
/// round those differently.
std::optional<std::uint8_t> to_power_of_two(double value) noexcept;

}  // namespace bascule
