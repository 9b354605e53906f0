// Floating-point formats as bits, and correct rounding into each of them by GNU MPFR. Nothing here is shared
// with the machine.
#pragma once

#include <cstdint>
#include <mpfr.h>

#include "ptx/types.hpp"

namespace reference {

using emulated::ptx::Type;
/// The bits of an operand or a result, in the low end. A predicate is 0 or 1.
using Bits = std::uint64_t;
__extension__ typedef __int128 Wide;

/// One of f16, bf16, f32, f64, with MPFR's convention: values are 0.1xxx times two to the exponent.
struct Format {
    int precision;          ///< significant bits of a normal number
    int least_exponent;     ///< of the least subnormal
    int greatest_exponent;  ///< of the greatest finite number
    unsigned bits;          ///< of the whole
    Bits canonical_nan;
};
const Format& format_of(Type type);

/// The element type of a packed type; any other type is its own.
Type element_of(Type type);
bool is_packed(Type type);

double value_of(Type type, Bits bits);  ///< exact: every format fits a double
Bits bits_of(Type type, double value);  ///< `value` must be representable
bool is_nan(Type type, Bits bits);
bool is_subnormal(Type type, Bits bits);
Bits flushed(Type type, Bits bits);  ///< a subnormal becomes the zero of its sign
Bits sign_bit(Type type);
/// The integer type that holds any product of two values of `type`, as mul.wide gives it.
Type twice_as_wide(Type type);

/// A number with the precision for any operand: a double, or a 64-bit integer.
class Number {
  public:
    Number() { mpfr_init2(value_, 64); }
    explicit Number(double value) : Number() { mpfr_set_d(value_, value, MPFR_RNDN); }
    explicit Number(Wide integer);
    ~Number() { mpfr_clear(value_); }
    Number(const Number&) = delete;
    Number& operator=(const Number&) = delete;
    operator mpfr_srcptr() const { return value_; }

  private:
    mpfr_t value_;
};

/// The bits of the result of `compute(result, rounding)`, rounded once into `type`, including subnormals and overflow.
/// `compute` returns MPFR's ternary value.
template <class Compute>
Bits rounded(Type type, mpfr_rnd_t rounding, Compute&& compute) {
    const Format& format = format_of(type);
    mpfr_t result;
    mpfr_init2(result, format.precision);
    int inexact = compute(result, rounding);
    const mpfr_exp_t least = mpfr_get_emin(), greatest = mpfr_get_emax();
    mpfr_set_emin(format.least_exponent);
    mpfr_set_emax(format.greatest_exponent);
    inexact = mpfr_check_range(result, inexact, rounding);
    mpfr_subnormalize(result, inexact, rounding);
    const double value = mpfr_get_d(result, MPFR_RNDN);
    mpfr_set_emin(least);
    mpfr_set_emax(greatest);
    mpfr_clear(result);
    return bits_of(type, value);
}

/// Like `rounded`; with .ftz, returns zero if the result, rounded to the precision of a normal number, is less than the
/// least normal one: an H100 flushes before it would round a subnormal result up to the least normal one. PTX does not
/// say which comes first.
template <class Compute>
Bits rounded_or_flushed(bool flushes, Type type, mpfr_rnd_t rounding, Compute&& compute) {
    const Bits bits = rounded(type, rounding, compute);
    if (!flushes) return bits;
    const Format& format = format_of(type);
    mpfr_t result;
    mpfr_init2(result, format.precision);
    compute(result, rounding);
    const bool tiny =
        mpfr_regular_p(result) && mpfr_get_exp(result) < format.least_exponent + format.precision - 1;
    mpfr_clear(result);
    return tiny ? bits & sign_bit(type) : bits;
}

}  // namespace reference
