// cvt to and from formats that are packed in pairs, and to tf32, with the instruction's rounding, .relu and .satfinite.
// Values are converted through double, which represents each of these formats exactly.
#include <bit>
#include <cmath>
#include <cstring>

#include "machine/groups.hpp"
#include "machine/registry.hpp"
#include "program/variants.hpp"

namespace emulated::machine {
namespace {

using program::SmallConversion;
using program::SmallFormat;

struct Layout {
    unsigned mantissa, exponent;  ///< stored bits
    bool has_infinity;            ///< otherwise only the last mantissa of the greatest exponent is NaN
    u32 nan;
    unsigned bits() const { return 1 + mantissa + exponent; }
    int bias() const { return (1 << (exponent - 1)) - 1; }
    u32 infinity() const { return ((1u << exponent) - 1) << mantissa; }
    u32 greatest() const { return (has_infinity ? infinity() : nan) - 1; }
};

// Indexed by SmallFormat. f32 and f64 are only sources.
constexpr Layout layouts[] = {
    {10, 5, true, 0x7fff},       // f16
    {7, 8, true, 0x7fff},        // bf16
    {3, 4, false, 0x7f},         // e4m3
    {2, 5, true, 0x7f},          // e5m2
    {10, 8, true, 0x3'ffff},     // tf32, without the 13 bits below it
    {23, 8, true, 0x7fff'ffff},  // f32
};

double decoded(u64 bits, SmallFormat format) {
    if (format == SmallFormat::f64) return std::bit_cast<double>(bits);
    const Layout& of = layouts[static_cast<std::size_t>(format)];
    const auto magnitude = static_cast<u32>(bits & ((u64{1} << (of.bits() - 1)) - 1));
    const bool negative = bits >> (of.bits() - 1) & 1;
    double value = 0;
    if (of.has_infinity ? magnitude > of.infinity() : magnitude == of.nan) {
        value = std::nan("");
    } else if (of.has_infinity && magnitude == of.infinity()) {
        value = HUGE_VAL;
    } else {
        const auto exponent = static_cast<int>(magnitude >> of.mantissa);
        const u32 fraction = magnitude & ((1u << of.mantissa) - 1);
        const u32 significand = exponent == 0 ? fraction : fraction | 1u << of.mantissa;
        value = std::ldexp(significand, std::max(exponent, 1) - of.bias() - static_cast<int>(of.mantissa));
    }
    return negative ? -value : value;
}

u32 encoded(double value, const SmallConversion& how) {
    const Layout& to = layouts[static_cast<std::size_t>(how.to)];
    if (std::isnan(value)) return to.nan;
    const bool negative = std::signbit(value);
    if (how.relu && negative) return 0;
    const u32 sign = negative ? 1u << (to.bits() - 1) : 0;
    const double magnitude = std::fabs(value);
    const bool away = how.rounding == Flag::rp ? !negative : how.rounding == Flag::rm && negative;
    u64 rounded = to.greatest() + u64{1};
    if (!std::isinf(value)) {
        // The magnitude in units of the result's last place: scaling it by a power of two is exact in a double.
        const int least = 1 - to.bias();
        const int exponent = magnitude == 0 ? least : std::max(std::ilogb(magnitude), least);
        const double units = std::ldexp(magnitude, static_cast<int>(to.mantissa) - exponent);
        const double whole = std::floor(units), lost = units - whole;
        const bool odd = std::fmod(whole, 2) != 0;
        const bool up = how.rounding == Flag::rn    ? lost > 0.5 || (lost == 0.5 && odd)
                        : how.rounding == Flag::rna ? lost >= 0.5
                                                    : away && lost > 0;
        // The implicit bit increments the exponent; a subnormal has no implicit bit.
        const u64 base = static_cast<u64>(std::min(exponent - least, 1 << 12)) << to.mantissa;
        rounded = base + static_cast<u64>(whole) + (up ? 1 : 0);
    }
    if (rounded <= to.greatest()) return sign | static_cast<u32>(rounded);
    if (how.saturates) return sign | to.greatest();
    if (!std::isinf(value) && how.rounding != Flag::rn && how.rounding != Flag::rna && !away)
        return sign | to.greatest();
    return sign | (to.has_infinity ? to.infinity() : to.nan);
}

unsigned bytes_of(SmallFormat format) {
    if (format == SmallFormat::f64) return 8;
    if (format == SmallFormat::tf32) return 4;
    return layouts[static_cast<std::size_t>(format)].bits() / 8;
}

u64 part(const std::byte* at, SmallFormat format, unsigned k) {
    u64 bits = 0;
    std::memcpy(&bits, at + std::size_t{k} * bytes_of(format), bytes_of(format));
    return bits;
}

// Operands d, a, b. If a and b hold one f32 each, a becomes the upper half of d; a packed a holds both values.
const Instruction* convert(Lanes& s, const Instruction* i) {
    const auto how = program::unpacked<SmallConversion>(i);
    const auto source = [&](unsigned operand, unsigned l) {
        return s.registers + i->operand[operand] + std::size_t{l} * how.source_bytes;
    };
    const unsigned result_bytes = std::max(2u, bytes_of(how.to) * (how.pair ? 2 : 1));
    const unsigned shift = how.to == SmallFormat::tf32 ? 13 : 0;
    for (const unsigned l : LanesOf{s.mask}) {
        const auto at = [&](unsigned k) {
            if (!how.pair) return decoded(part(source(1, l), how.from, 0), how.from);
            if (how.packed) return decoded(part(source(1, l), how.from, k), how.from);
            return decoded(part(source(k == 1 ? 1 : 2, l), how.from, 0), how.from);
        };
        u32 result = encoded(at(0), how) << shift;
        if (how.pair) result |= encoded(at(1), how) << (8 * bytes_of(how.to));
        if (how.to == SmallFormat::tf32 && result == 0x7fff'e000) result = 0x7fff'ffff;
        std::memcpy(s.registers + i->operand[0] + std::size_t{l} * result_bytes, &result, result_bytes);
    }
    return i + 1;
}

}  // namespace

void register_small_formats(Registry& r) { r.add(Operation::convert_small, convert); }

}  // namespace emulated::machine
