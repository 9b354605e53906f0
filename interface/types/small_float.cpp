// Sources: IEEE 754 (binary16), OCP 8-bit Floating Point Specification (E4M3, E5M2), OCP Microscaling Formats
// (E8M0, E3M2, E2M3, E2M1).
#include <algorithm>
#include <cmath>

#include <bascule/interface/types/small_float.hpp>

namespace bascule {
namespace {

using Format = DType::Format;

struct SmallFloatRow {
    Format format;
    SmallFloat layout;
};

constexpr SmallFloat half = {10, 5, 0x7BFF, 0x7C00, 0x7E00};
constexpr std::array small_float_rows = {
    SmallFloatRow{Format::bfloat16, {7, 8, 0x7F7F, 0x7F80, 0x7FC0}},
    SmallFloatRow{Format::float8_e4m3fn, {3, 4, 0x7E, std::nullopt, 0x7F}},
    SmallFloatRow{Format::float8_e5m2, {2, 5, 0x7B, 0x7C, 0x7E}},
    SmallFloatRow{Format::float6_e2m3fn, {3, 2, 0x1F}},
    SmallFloatRow{Format::float6_e3m2fn, {2, 3, 0x1F}},
    SmallFloatRow{Format::float4_e2m1fn, {1, 2, 0x7}},
};

}  // namespace

const SmallFloat* small_float(DType dtype) noexcept {
    if (dtype.kind == DType::Kind::floating && dtype.itemsize == 2) return &half;
    const auto row = std::ranges::find(small_float_rows, dtype.format, &SmallFloatRow::format);
    return row == small_float_rows.end() ? nullptr : &row->layout;
}

// Uses integers, so that the thread's rounding mode has no effect.
std::optional<std::uint16_t> nearest(const SmallFloat& format, double value) noexcept {
    const int mantissa = format.mantissa;
    const unsigned sign = std::signbit(value) ? 1u << (mantissa + format.exponent_bits) : 0;
    const auto signed_pattern = [&](std::uint64_t bits) { return static_cast<std::uint16_t>(sign | bits); };
    if (std::isnan(value)) return format.nan ? std::optional(signed_pattern(*format.nan)) : std::nullopt;
    if (std::isinf(value))
        return format.infinity ? std::optional(signed_pattern(*format.infinity)) : std::nullopt;

    // |value| = digits * 2**(exponent - 53); the last bit of the result weighs 2**scale.
    int exponent = 0;
    const auto digits = static_cast<std::uint64_t>(std::ldexp(std::frexp(std::fabs(value), &exponent), 53));
    const int bias = (1 << (format.exponent_bits - 1)) - 1;
    const int scale = std::max(exponent - 1, 1 - bias) - mantissa;
    const int dropped = scale - (exponent - 53);
    if (dropped > 54) return signed_pattern(0);  // less than half of the smallest
    const std::uint64_t middle = std::uint64_t{1} << (dropped - 1);
    const std::uint64_t rest = digits & (2 * middle - 1);
    std::uint64_t pattern = digits >> dropped;
    if (rest > middle || (rest == middle && pattern % 2 == 1)) ++pattern;

    // A normal number has its implicit bit at `mantissa`; a carry moves into the exponent by itself.
    if (pattern >= std::uint64_t{1} << mantissa) {
        pattern += static_cast<std::uint64_t>(scale + mantissa + bias - 1) << mantissa;
    }
    if (pattern > format.largest) return std::nullopt;
    return signed_pattern(pattern);
}

double largest_number(const SmallFloat& format) noexcept {
    const int bias = (1 << (format.exponent_bits - 1)) - 1;
    const int exponent = format.largest >> format.mantissa;
    const int fraction = format.largest & ((1 << format.mantissa) - 1);
    return std::ldexp((1 << format.mantissa) + fraction, exponent - bias - format.mantissa);
}

std::optional<std::uint8_t> to_power_of_two(double value) noexcept {
    if (std::isnan(value)) return 0xFF;
    int exponent = 0;
    if (std::frexp(value, &exponent) != 0.5) return std::nullopt;
    const int biased = exponent - 1 + 127;
    if (biased < 0 || biased > 254) return std::nullopt;
    return static_cast<std::uint8_t>(biased);
}

}  // namespace bascule
