// Floating-point formats of 16 bits and fewer: the nearest value of each, exactly.
#pragma once

#include <bascule/interface/types/dtype.hpp>

namespace bascule {

/// The layout of a binary format: a sign, an exponent of `exponent_bits` with the usual bias, and `mantissa` stored bits.
struct SmallFloat {
    int mantissa;
    int exponent_bits;
    std::uint16_t largest;                    ///< the pattern of the largest finite number
    std::optional<std::uint16_t> infinity{};  ///< empty: the format has no infinity
    std::optional<std::uint16_t> nan{};
};

/// The layout of float16, bfloat16 and the float8, float6 and float4 formats of CUDA C++; null for other types.
/// float8_e8m0fnu, which holds only powers of two, is not included.
const SmallFloat* small_float(DType dtype) noexcept;

/// The bit pattern of the nearest number, ties to even. Returns nothing for numbers that round beyond the largest, and
/// for infinity and NaN if the format lacks them.
std::optional<std::uint16_t> nearest(const SmallFloat& format, double value) noexcept;

/// The value of the pattern `largest`: 448 for float8_e4m3fn.
double largest_number(const SmallFloat& format) noexcept;

/// The float8_e8m0fnu pattern of a power of two from 2**-127 to 2**127, or of NaN. Returns nothing for other numbers,
/// because other libraries round those differently.
std::optional<std::uint8_t> to_power_of_two(double value) noexcept;

}  // namespace bascule
