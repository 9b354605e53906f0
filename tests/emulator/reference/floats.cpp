// Floating-point arithmetic: the exact result, rounded once. Packed halves are computed separately.
#include <cmath>

#include "reference/evaluate.hpp"

namespace reference {
namespace {

// Applies `compute` to each half of a packed type, or to a single value.
template <class Compute>
void each_element(const Call& call, Answers& out, std::size_t sources, Compute&& compute) {
    const Type element = element_of(call.type());
    const unsigned width = bits_in(element);
    Answer& answer = out.add(call.type(), 0);
    for (unsigned at = 0; at < bits_in(call.type()); at += width) {
        Bits given[3] = {};
        for (std::size_t i = 0; i < sources; ++i) {
            given[i] = call[i] >> at & mask_of(element);
            if (call.has(Flag::ftz)) given[i] = flushed(element, given[i]);
        }
        answer.bits |= compute(element, given) << at;
    }
}

// Applies the modifiers to a result: .ftz, .sat, .relu.
Bits finished(const Call& call, Type element, Bits bits) {
    if (call.has(Flag::ftz)) bits = flushed(element, bits);
    if (call.has(Flag::sat)) bits = saturated(element, bits);
    if (call.has(Flag::relu) && !is_nan(element, bits) && !(value_of(element, bits) > 0)) bits = 0;
    return bits;
}

using Unary = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
using Binary = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t);

template <Unary Compute>
void unary(const Call& call, Answers& out) {
    each_element(call, out, 1, [&](Type element, const Bits* given) {
        const Number a(value_of(element, given[0]));
        return finished(call, element,
                        rounded(element, rounding_of(call.opcode.flags),
                                [&](mpfr_ptr r, auto rounding) { return Compute(r, a, rounding); }));
    });
}
// Rounded correctly here. One unit of error is allowed, because the device rounds to double first, and ex2 of halves
// toward zero, as GPUs do.
template <Unary Compute>
void approximate(const Call& call, Answers& out) {
    unary<Compute>(call, out);
    out.at[out.count - 1].tolerance = 1;
}
template <Binary Compute>
void binary(const Call& call, Answers& out) {
    each_element(call, out, 2, [&](Type element, const Bits* given) {
        const Number a(value_of(element, given[0])), b(value_of(element, given[1]));
        const auto compute = [&](mpfr_ptr r, auto rounding) { return Compute(r, a, b, rounding); };
        return finished(
            call, element,
            rounded_or_flushed(call.has(Flag::ftz), element, rounding_of(call.opcode.flags), compute));
    });
}
// The NaN with which GPUs fill elements outside of a tensor.
bool is_outside(Bits half) { return half == 0x7ff7 || half == 0xfff7; }

void fma(const Call& call, Answers& out) {
    each_element(call, out, 3, [&](Type element, const Bits* given) {
        if (call.has(Flag::oob) && (is_outside(given[0]) || is_outside(given[1]))) return Bits{0};
        const Number a(value_of(element, given[0])), b(value_of(element, given[1])),
            c(value_of(element, given[2]));
        return finished(
            call, element,
            rounded_or_flushed(call.has(Flag::ftz), element, rounding_of(call.opcode.flags),
                               [&](mpfr_ptr r, auto rounding) { return mpfr_fma(r, a, b, c, rounding); }));
    });
}

int reciprocal(mpfr_ptr r, mpfr_srcptr a, mpfr_rnd_t rounding) { return mpfr_ui_div(r, 1, a, rounding); }
// PTX: rsqrt(-0) is -inf.
int reciprocal_root(mpfr_ptr r, mpfr_srcptr a, mpfr_rnd_t rounding) {
    if (!mpfr_zero_p(a)) return mpfr_rec_sqrt(r, a, rounding);
    mpfr_set_inf(r, mpfr_signbit(a) ? -1 : 1);
    return 0;
}

void abs(const Call& call, Answers& out) {
    each_element(call, out, 1,
                 [&](Type element, const Bits* given) { return given[0] & ~sign_bit(element); });
}
void neg(const Call& call, Answers& out) {
    each_element(call, out, 1, [&](Type element, const Bits* given) { return given[0] ^ sign_bit(element); });
}

// A number wins over NaN (unless .NaN is there), and -0 is less than +0.
template <bool Greater>
void extreme(const Call& call, Answers& out) {
    each_element(call, out, 2, [&](Type element, const Bits* given) {
        const Bits signs = call.has(Flag::xorsign) ? (given[0] ^ given[1]) & sign_bit(element) : 0;
        Bits pair[] = {given[0], given[1]};
        if (call.has(Flag::xorsign)) {  // always with .abs
            for (Bits& each : pair) each &= ~sign_bit(element);
        }
        const bool a_is_nan = is_nan(element, pair[0]), b_is_nan = is_nan(element, pair[1]);
        const Bits nan = format_of(element).canonical_nan;
        if (a_is_nan && b_is_nan) return nan;
        if (a_is_nan || b_is_nan) return call.has(Flag::nan_wins) ? nan : signs | pair[a_is_nan ? 1 : 0];
        const double a = value_of(element, pair[0]), b = value_of(element, pair[1]);
        const bool a_is_less = a < b || (a == b && std::signbit(a) && !std::signbit(b));
        return signs | pair[a_is_less == Greater ? 1 : 0];
    });
}

// The sign of a, the magnitude of b.
void copysign(const Call& call, Answers& out) {
    const Bits sign = sign_bit(call.type());
    out.add(call.type(), (call[0] & sign) | (call[1] & ~sign));
}

void testp(const Call& call, Answers& out) {
    const double value = value_of(call.type(), call[0]);
    const bool subnormal = is_subnormal(call.type(), call[0]);
    bool holds = false;
    if (call.has(Flag::finite)) holds = std::isfinite(value);
    if (call.has(Flag::infinite)) holds = std::isinf(value);
    if (call.has(Flag::number)) holds = !std::isnan(value);
    if (call.has(Flag::notanumber)) holds = std::isnan(value);
    if (call.has(Flag::normal)) holds = std::isfinite(value) && !subnormal;  // PTX counts zeros as normal
    if (call.has(Flag::subnormal)) holds = subnormal;
    out.add(Type::pred, holds);
}

constexpr Family families[] = {
    {"add:float", "T", "TT", binary<mpfr_add>},
    {"sub:float", "T", "TT", binary<mpfr_sub>},
    {"mul:float", "T", "TT", binary<mpfr_mul>},
    {"div:float", "T", "TT", binary<mpfr_div>},
    {"fma", "T", "TTT", fma},
    {"mad:float", "T", "TTT", fma},
    {"rcp", "T", "T", unary<reciprocal>},
    {"sqrt", "T", "T", unary<mpfr_sqrt>},
    {"rsqrt", "T", "T", approximate<reciprocal_root>},
    {"sin", "T", "T", approximate<mpfr_sin>},
    {"cos", "T", "T", approximate<mpfr_cos>},
    {"lg2", "T", "T", approximate<mpfr_log2>},
    {"ex2", "T", "T", approximate<mpfr_exp2>},
    {"tanh", "T", "T", approximate<mpfr_tanh>},
    {"abs:float", "T", "T", abs},
    {"neg:float", "T", "T", neg},
    {"min:float", "T", "TT", extreme<false>},
    {"max:float", "T", "TT", extreme<true>},
    {"copysign", "T", "TT", copysign},
    {"testp", "p", "T", testp},
};

}  // namespace

std::span<const Family> float_families() { return families; }

}  // namespace reference
