// Floating-point formats as bits.
#include "reference/numbers.hpp"

#include <bit>
#include <cmath>
#include <stdexcept>

namespace reference {

const Format& format_of(Type type) {
    static constexpr Format half{11, -23, 16, 16, 0x7fff}, brain{8, -132, 128, 16, 0x7fff},
        single{24, -148, 128, 32, 0x7fff'ffff}, twice{53, -1073, 1024, 64, 0x7fff'ffff'ffff'ffff};
    switch (element_of(type)) {
        case Type::f16:
            return half;
        case Type::bf16:
            return brain;
        case Type::f32:
            return single;
        case Type::f64:
            return twice;
        default:
            throw std::logic_error("not a floating-point type");
    }
}

Type twice_as_wide(Type type) {
    switch (type) {
        case Type::u16:
            return Type::u32;
        case Type::s16:
            return Type::s32;
        case Type::u32:
            return Type::u64;
        case Type::s32:
            return Type::s64;
        default:
            throw std::logic_error("no type is twice as wide");
    }
}

Type element_of(Type type) {
    switch (type) {
        case Type::f16x2:
            return Type::f16;
        case Type::bf16x2:
            return Type::bf16;
        case Type::u16x2:
            return Type::u16;
        case Type::s16x2:
            return Type::s16;
        default:
            return type;
    }
}

bool is_packed(Type type) { return element_of(type) != type; }

namespace {

// Stored bits of the mantissa, and the exponent's bias.
struct Layout {
    int mantissa, bias;
};
Layout layout_of(Type type) {
    const Format& format = format_of(type);
    return {format.precision - 1, format.greatest_exponent - 1};
}

}  // namespace

double value_of(Type type, Bits bits) {
    if (type == Type::f64) return std::bit_cast<double>(bits);
    const auto [mantissa, bias] = layout_of(type);
    const unsigned width = format_of(type).bits;
    const bool negative = bits >> (width - 1) & 1;
    const int exponent = static_cast<int>((bits & ~sign_bit(type)) >> mantissa) & (2 * bias + 1);
    const Bits fraction = bits & ((Bits{1} << mantissa) - 1);
    double value = 0;
    if (exponent == 2 * bias + 1)
        value = fraction ? std::nan("") : HUGE_VAL;
    else if (exponent == 0)
        value = std::ldexp(static_cast<double>(fraction), 1 - bias - mantissa);
    else
        value = std::ldexp(static_cast<double>(fraction | Bits{1} << mantissa), exponent - bias - mantissa);
    return std::copysign(value, negative ? -1.0 : 1.0);
}

Bits bits_of(Type type, double value) {
    if (std::isnan(value)) return format_of(type).canonical_nan;
    if (type == Type::f64) return std::bit_cast<Bits>(value);
    const auto [mantissa, bias] = layout_of(type);
    const Bits sign = std::signbit(value) ? sign_bit(type) : 0;
    const double magnitude = std::fabs(value);
    if (std::isinf(value)) return sign | Bits(2 * bias + 1) << mantissa;
    if (magnitude == 0) return sign;
    const int exponent = std::ilogb(magnitude);
    if (exponent < 1 - bias) return sign | static_cast<Bits>(std::ldexp(magnitude, bias - 1 + mantissa));
    const Bits significand = static_cast<Bits>(std::ldexp(magnitude, mantissa - exponent));
    return sign | (significand + (static_cast<Bits>(exponent + bias - 1) << mantissa));
}

Bits sign_bit(Type type) { return Bits{1} << (format_of(type).bits - 1); }

bool is_nan(Type type, Bits bits) { return std::isnan(value_of(type, bits)); }

bool is_subnormal(Type type, Bits bits) {
    const Bits magnitude = bits & ~sign_bit(type);
    return magnitude != 0 && magnitude >> layout_of(type).mantissa == 0;
}

Bits flushed(Type type, Bits bits) { return is_subnormal(type, bits) ? bits & sign_bit(type) : bits; }

Number::Number(Wide integer) : Number() {
    const bool negative = integer < 0;
    mpfr_set_ui(value_, static_cast<unsigned long>(negative ? -integer : integer), MPFR_RNDN);
    if (negative) mpfr_neg(value_, value_, MPFR_RNDN);
}

}  // namespace reference
