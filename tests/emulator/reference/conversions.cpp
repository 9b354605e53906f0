// cvt between every pair of types.
#include <cmath>

#include "reference/evaluate.hpp"

namespace reference {
namespace {

// Rounds a float to an integer in the requested direction; exact for 64 bits and a sign.
Bits to_integer(const Call& call, Type to, Type from, Bits bits) {
    if (call.has(Flag::ftz)) bits = flushed(from, bits);
    if (is_nan(from, bits)) {
        // PTX: zero, unless a double or 64 bits are involved; then only the highest bit is set.
        const bool wide = from == Type::f64 || bits_in(to) == 64;
        return wide ? Bits{1} << (bits_in(to) - 1) : 0;
    }
    const Number value(value_of(from, bits));
    const mpfr_rnd_t rounding = call.has(Flag::rni)   ? MPFR_RNDN
                                : call.has(Flag::rmi) ? MPFR_RNDD
                                : call.has(Flag::rpi) ? MPFR_RNDU
                                                      : MPFR_RNDZ;
    mpfr_t whole;
    mpfr_init2(whole, 64);
    mpfr_rint(whole, value, rounding);
    const bool negative = mpfr_sgn(whole) < 0;
    mpfr_abs(whole, whole, MPFR_RNDN);
    // Anything beyond 64 bits is out of range for every type.
    const Wide magnitude = mpfr_fits_ulong_p(whole, MPFR_RNDN)
                               ? static_cast<Wide>(mpfr_get_ui(whole, MPFR_RNDN))
                               : Wide{1} << 64;
    mpfr_clear(whole);
    return clamped(to, negative ? -magnitude : magnitude);
}

Bits to_float(const Call& call, Type to, Type from, Bits bits) {
    const FlagSet& flags = call.opcode.flags;
    Bits made = 0;
    if (is_integer(from)) {
        const Number value(integer_of(from, bits));
        made = rounded(to, rounding_of(flags),
                       [&](mpfr_ptr r, mpfr_rnd_t rounding) { return mpfr_set(r, value, rounding); });
    } else {
        const bool narrow_exponents = from == Type::f32 || (from == Type::bf16 && to == Type::f32);
        // A value is not flushed before it is converted to a half, whatever PTX says; GPUs do the same.
        if (call.has(Flag::ftz) && narrow_exponents && to != Type::f16) bits = flushed(from, bits);
        const Number value(value_of(from, bits));
        const bool to_whole =
            call.has(Flag::rni) || call.has(Flag::rzi) || call.has(Flag::rmi) || call.has(Flag::rpi);
        const bool flushes = call.has(Flag::ftz) && to == Type::f32;
        made = rounded_or_flushed(flushes, to, rounding_of(flags), [&](mpfr_ptr r, mpfr_rnd_t rounding) {
            if (!to_whole) return mpfr_set(r, value, rounding);
            if (call.has(Flag::rni)) return mpfr_rint(r, value, MPFR_RNDN);
            if (call.has(Flag::rzi)) return mpfr_rint(r, value, MPFR_RNDZ);
            return mpfr_rint(r, value, call.has(Flag::rmi) ? MPFR_RNDD : MPFR_RNDU);
        });
    }
    if (call.has(Flag::relu) && !is_nan(to, made) && made & sign_bit(to)) made = 0;
    if (call.has(Flag::satfinite)) {
        const Bits infinity = bits_of(to, HUGE_VAL);
        if ((made & ~sign_bit(to)) == infinity) made = (made & sign_bit(to)) | (infinity - 1);
    }
    return call.has(Flag::sat) ? saturated(to, made) : made;
}

Bits converted(const Call& call, Type to, Type from, Bits bits) {
    if (!is_integer(to)) return to_float(call, to, from, bits);
    if (!is_integer(from)) return to_integer(call, to, from, bits);
    const Wide value = integer_of(from, bits);
    return call.has(Flag::sat) ? clamped(to, value) : wrapped(to, value);
}

void cvt(const Call& call, Answers& out) {
    out.add(call.type(), converted(call, call.type(), call.opcode.second, call[0]));
}
// cvt.rn.f16x2.f32 d, a, b: a becomes the upper half.
void cvt_pair(const Call& call, Answers& out) {
    const Type half = element_of(call.type());
    const Bits upper = converted(call, half, call.opcode.second, call[0]);
    out.add(call.type(), upper << 16 | converted(call, half, call.opcode.second, call[1]));
}

constexpr Family families[] = {
    {"cvt:packed", "T", "SS", cvt_pair},
    {"cvt", "T", "S", cvt},
};

}  // namespace

std::span<const Family> conversion_families() { return families; }

}  // namespace reference
