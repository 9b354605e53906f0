// Handlers of floating-point arithmetic. Results are exact where PTX requires it; approximations are correctly rounded from
// double.
#include <fenv.h>
#include <math.h>

#include "handlers/half.hpp"

namespace emulated::machine::BASCULE_ISA {
namespace {

// --- operations --------------------------------------------------------------------------------------------

using FAdd = decltype([]<class T>(T a, T b) -> T { return a + b; });
using FSub = decltype([]<class T>(T a, T b) -> T { return a - b; });
using FMul = decltype([]<class T>(T a, T b) -> T { return a * b; });
using FDiv = decltype([]<class T>(T a, T b) -> T { return a / b; });
struct Fma {
    float operator()(float a, float b, float c) const { return __builtin_fmaf(a, b, c); }
    double operator()(double a, double b, double c) const { return __builtin_fma(a, b, c); }
};
struct Sqrt {
    float operator()(float a) const { return __builtin_sqrtf(a); }
    double operator()(double a) const { return __builtin_sqrt(a); }
};
using Rcp = decltype([]<class T>(T a) -> T { return T(1) / a; });
struct Rsqrt {
    float operator()(float a) const {
        return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(a)));
    }
    double operator()(double a) const { return 1.0 / __builtin_sqrt(a); }
};
using Sin = decltype([](float a) -> float { return static_cast<float>(::sin(static_cast<double>(a))); });
using Cos = decltype([](float a) -> float { return static_cast<float>(::cos(static_cast<double>(a))); });
using Lg2 = decltype([](float a) -> float { return static_cast<float>(::log2(static_cast<double>(a))); });
using Ex2 = decltype([](float a) -> float { return static_cast<float>(::exp2(static_cast<double>(a))); });
using Tanh = decltype([](float a) -> float { return static_cast<float>(::tanh(static_cast<double>(a))); });

using FNeg = decltype([]<class T>(T a) -> T {
    return bits_as<T>(static_cast<BitsOf<T>>(bits_as<BitsOf<T>>(a) ^ sign_bit<T>));
});
using FAbs = decltype([]<class T>(T a) -> T {
    return bits_as<T>(static_cast<BitsOf<T>>(bits_as<BitsOf<T>>(a) & ~sign_bit<T>));
});
using Copysign = decltype([]<class T>(T a, T b) -> T {  // PTX: the sign of a, the magnitude of b
    return bits_as<T>((bits_as<BitsOf<T>>(a) & sign_bit<T>) | (bits_as<BitsOf<T>>(b) & ~sign_bit<T>));
});

// A number wins over NaN, and -0 is less than +0. With NanWins a NaN gives the canonical NaN.
template <bool IsMax, bool NanWins>
struct FExtreme {
    template <class T>
    T operator()(T a, T b) const {
        using U = BitsOf<T>;
        const U x = bits_as<U>(a), y = bits_as<U>(b);
        const T equal = bits_as<T>(static_cast<U>(IsMax ? x & y : x | y));  // for two zeros
        const T canonical_nan = bits_as<T>(static_cast<U>(~sign_bit<T>));
        T r = (IsMax ? a > b : a < b) ? a : a == b ? equal : b;
        if (a != a) r = NanWins ? canonical_nan : b;
        if (b != b) r = NanWins || a != a ? canonical_nan : a;
        return r;
    }
};
// Applies `Extreme` to the magnitudes; the result has the sign of the product.
template <class Extreme>
struct XorSign {
    template <class T>
    T operator()(T a, T b) const {
        using U = BitsOf<T>;
        const U x = bits_as<U>(a), y = bits_as<U>(b);
        const T r = Extreme{}(bits_as<T>(static_cast<U>(x & ~sign_bit<T>)),
                              bits_as<T>(static_cast<U>(y & ~sign_bit<T>)));
        if (r != r) return r;
        return bits_as<T>(static_cast<U>(bits_as<U>(r) | ((x ^ y) & sign_bit<T>)));
    }
};
template <bool NanWins>
using FMin = FExtreme<false, NanWins>;
template <bool NanWins>
using FMax = FExtreme<true, NanWins>;

using CNe = decltype([]<class T>(T a, T b) -> bool { return a < b || a > b; });  // false for NaN
using CEqu = decltype([]<class T>(T a, T b) -> bool { return !(a < b || a > b); });
using CNeu = decltype([]<class T>(T a, T b) -> bool { return !(a == b); });
using CLtu = decltype([]<class T>(T a, T b) -> bool { return !(a >= b); });
using CLeu = decltype([]<class T>(T a, T b) -> bool { return !(a > b); });
using CGtu = decltype([]<class T>(T a, T b) -> bool { return !(a <= b); });
using CGeu = decltype([]<class T>(T a, T b) -> bool { return !(a < b); });
using CNum = decltype([]<class T>(T a, T b) -> bool { return a == a && b == b; });
using CNan = decltype([]<class T>(T a, T b) -> bool { return a != a || b != b; });

template <Flag What, class T>
struct Testp {
    bool operator()(T a) const {
        using U = BitsOf<T>;
        const U m = bits_as<U>(a) & ~sign_bit<T>, e = exponent_bits<T>;
        return What == Flag::finite       ? m < e
               : What == Flag::infinite   ? m == e
               : What == Flag::number     ? m <= e
               : What == Flag::notanumber ? m > e
               : What == Flag::normal     ? m < e && ((m & e) != 0 || m == 0)  // PTX counts zeros as normal
                                          : (m & e) == 0 && m != 0;
    }
};

// .ftz of products and quotients: the result is zero if it is less than the least normal number when rounded to 24 bits. An
// H100 flushes 2^-126 * (1 - 2^-24), although rounding it as a subnormal number gives 2^-126; ptxas's division does the
// same.
template <class F>
struct FtzRounded {
    float operator()(float a, float b) const {
        a = flushed(a), b = flushed(b);
        return unless_tiny(F{}(a, b), F{}(a * up, b));
    }
    float operator()(float a, float b, float c) const {
        a = flushed(a), b = flushed(b), c = flushed(c);
        return unless_tiny(F{}(a, b, c), F{}(a * up, b, c * up));
    }

  private:
    // Scales the result away from subnormal numbers. If scaling overflows, the result is not tiny.
    static constexpr float up = 0x1p64f;
    static float unless_tiny(float r, float scaled) {
        const std::uint32_t sign = bits_as<std::uint32_t>(r) & sign_bit<float>;
        const bool tiny = __builtin_fabsf(r) <= 0x1p-126f && __builtin_fabsf(scaled) < 0x1p-62f;
        return bits_as<float>(tiny ? sign : bits_as<std::uint32_t>(r));
    }
};

// --- halves ------------------------------------------------------------------------------------------------
// Computed in float, which is wide enough that double rounding changes nothing; fma is computed in double.

template <class F, class H>
struct Small {
    H operator()(auto... a) const { return from_float<H>(F{}(to_float(a)...)); }
};
// `Flushes`: .ftz of the result as in FtzRounded: zero if it is less than 2^-14 when rounded to 11 bits.
template <class H, bool Saturate, bool Relu, bool Flushes = false>
struct SmallFma {
    H operator()(H a, H b, H c) const {
        const double product = static_cast<double>(to_float(a)) * static_cast<double>(to_float(b));
        const double addend = static_cast<double>(to_float(c));
        double sum = product + addend;
        // Rounds to odd, because the bits that the sum loses may decide a tie in the second rounding.
        const double back = sum - product, error = (product - (sum - back)) + (addend - back);
        if (error != 0 && sum == sum && (bits_as<std::uint64_t>(sum) & 1) == 0 && back - back == 0) {
            const bool grow = (error > 0) == (sum > 0);
            sum = bits_as<double>(bits_as<std::uint64_t>(sum) + (grow ? 1ull : ~0ull));
        }
        if (Flushes && __builtin_fabs(sum) < 0x1.ffep-15) sum = __builtin_copysign(0.0, sum);
        if (Saturate) sum = sum > 0 ? (sum < 1 ? sum : 1.0) : 0.0;
        if (Relu) sum = sum != sum ? sum : sum > 0 ? sum : 0.0;
        return rounded_to_small<H, Flag::rn>(sum);
    }
};
template <bool Saturate>
struct FlushedProduct {
    Half operator()(Half a, Half b) const {
        constexpr Half minus_zero{0x8000};  // the identity of addition, also for zeros
        return SmallFma<Half, Saturate, false, true>{}(a, b, minus_zero);
    }
};
// ex2 as an H100 computes it: the argument has 23 fraction bits and the power is rounded toward zero.
template <class H>
struct SmallEx2 {
    H operator()(H a) const {
        const double power = ::exp2(static_cast<double>(__builtin_rintf(to_float(a) * 0x1p23f) * 0x1p-23f));
        constexpr double beyond = __is_same(H, Half) ? 0x1p16 : 0x1p128;
        return rounded_to_small<H, Flag::rz>(power < beyond ? power : power * __builtin_inf());
    }
};
// .oob: if a factor is the NaN that marks elements outside a tensor, the result is +0. PTX does not say which NaN that is.
// GPUs that fill tiles use this one, and recognise it with either sign.
template <class F>
struct Oob {
    template <class H>
    H operator()(H a, H b, H c) const {
        const auto is_outside = [](H h) { return (h.bits & 0x7fff) == 0x7ff7; };
        return is_outside(a) || is_outside(b) ? H{0} : F{}(a, b, c);
    }
};
template <class C, class H>
struct SmallCompare {
    bool operator()(H a, H b) const { return C{}(to_float(a), to_float(b)); }
};
// --- registration: every combination of modifiers that the table allows ------------------------------------

template <class F, class T, int Arity>
constexpr Lockstep elementwise() {
    if constexpr (Arity == 1)
        return unary<F, T>;
    else if constexpr (Arity == 2)
        return binary<F, T>;
    else
        return ternary<F, T>;
}

template <class F, class T, int Arity>
void add_rounded(Registry& r, Operation operation, FlagSet flags) {
    constexpr Handler plain = elementwise<F, T, Arity>();
    const auto with = [&](Flag flag) { return flags | FlagSet{flag}; };
    r.add(operation, type_of<T>, Type::none, flags, Lockstep{plain});
    r.add(operation, type_of<T>, Type::none, with(Flag::rz), rounded<FE_TOWARDZERO, plain>);
    r.add(operation, type_of<T>, Type::none, with(Flag::rm), rounded<FE_DOWNWARD, plain>);
    r.add(operation, type_of<T>, Type::none, with(Flag::rp), rounded<FE_UPWARD, plain>);
}

template <class F, int Arity>
void add_basic(Registry& r, Operation operation) {
    add_rounded<F, float, Arity>(r, operation, {});
    // Only products and quotients below 2^-126 can round up to it: sums are exact, and no root or reciprocal is so
    // close.
    constexpr bool rounds = __is_same(F, FMul) || __is_same(F, Fma) || __is_same(F, FDiv);
    using Flushing = std::conditional_t<rounds, FtzRounded<F>, Ftz<F>>;
    add_rounded<Flushing, float, Arity>(r, operation, {Flag::ftz});
    add_rounded<F, double, Arity>(r, operation, {});
    if constexpr (Arity > 1 && !__is_same(F, FDiv)) {
        add_rounded<Sat<F>, float, Arity>(r, operation, {Flag::sat});
        add_rounded<Sat<Flushing>, float, Arity>(r, operation, {Flag::sat, Flag::ftz});
    }
}

// Registers the operation with and without .ftz.
template <class F, int Arity = 1, class T = float>
void add_unrounded(Registry& r, Operation operation, FlagSet flags = {}) {
    r.add(operation, type_of<T>, Type::none, flags, elementwise<F, T, Arity>());
    r.add(operation, type_of<T>, Type::none, flags | FlagSet{Flag::ftz}, elementwise<Ftz<F>, T, Arity>());
}

template <class C>
void add_comparisons(Registry& r, Flag flag) {
    add_comparison<C, float>(r, flag);
    add_comparison<C, double>(r, flag);
    r.add(Operation::setp, Type::f32, Type::none, {flag, Flag::ftz}, compare<FtzInputs<C>, float>);
    r.add(Operation::setp, Type::f16, Type::none, {flag}, compare<SmallCompare<C, Half>, Half>);
    r.add(Operation::setp, Type::f16, Type::none, {flag, Flag::ftz},
          compare<FtzInputs<SmallCompare<C, Half>>, Half>);
    r.add(Operation::setp, Type::bf16, Type::none, {flag}, compare<SmallCompare<C, Brain>, Brain>);
}

template <class F, class H, int Arity>
void add_small(Registry& r, Operation operation, FlagSet flags, Type one, Type two) {
    r.add(operation, one, Type::none, flags, elementwise<F, H, Arity>());
    r.add(operation, two, Type::none, flags, elementwise<Twice<F, H>, std::uint32_t, Arity>());
}

// Registers an f16 operation with and without .ftz.
template <class F, int Arity, class Flushing = F>
void add_flushing(Registry& r, Operation operation, FlagSet flags = {}) {
    add_small<F, Half, Arity>(r, operation, flags, Type::f16, Type::f16x2);
    add_small<Ftz<Flushing>, Half, Arity>(r, operation, flags | FlagSet{Flag::ftz}, Type::f16, Type::f16x2);
}

template <template <bool> class Extreme>
void add_extremes(Registry& r, Operation operation) {
    const FlagSet nan{Flag::nan_wins}, apart{Flag::xorsign, Flag::abs_};
    const auto add = [&]<class F>(FlagSet flags) {
        add_unrounded<F, 2>(r, operation, flags);
        add_flushing<Small<F, Half>, 2>(r, operation, flags);
        add_small<Small<F, Brain>, Brain, 2>(r, operation, flags, Type::bf16, Type::bf16x2);
    };
    add.template operator()<Extreme<false>>({});
    add.template operator()<Extreme<true>>(nan);
    add.template operator()<XorSign<Extreme<false>>>(apart);
    add.template operator()<XorSign<Extreme<true>>>(apart | nan);
    r.add(operation, Type::f64, Type::none, {}, binary<Extreme<false>, double>);
}

template <class H>
void add_halves(Registry& r, Type one, Type two) {
    add_small<Small<FAdd, H>, H, 2>(r, Operation::add, {}, one, two);
    add_small<Small<FSub, H>, H, 2>(r, Operation::sub, {}, one, two);
    add_small<Small<FMul, H>, H, 2>(r, Operation::mul, {}, one, two);
    add_small<SmallFma<H, false, false>, H, 3>(r, Operation::fma, {}, one, two);
    add_small<SmallFma<H, false, true>, H, 3>(r, Operation::fma, {Flag::relu}, one, two);
    add_small<Oob<SmallFma<H, false, false>>, H, 3>(r, Operation::fma, {Flag::oob}, one, two);
    add_small<Oob<SmallFma<H, false, true>>, H, 3>(r, Operation::fma, {Flag::oob, Flag::relu}, one, two);
    add_small<FNeg, H, 1>(r, Operation::neg, {}, one, two);
    add_small<FAbs, H, 1>(r, Operation::abs, {}, one, two);
    add_small<Small<Tanh, H>, H, 1>(r, Operation::tanh, {}, one, two);
}

}  // namespace

void register_floats(Registry& r) {
    add_basic<FAdd, 2>(r, Operation::add);
    add_basic<FSub, 2>(r, Operation::sub);
    add_basic<FMul, 2>(r, Operation::mul);
    add_basic<FDiv, 2>(r, Operation::div);
    add_basic<Fma, 3>(r, Operation::fma);
    add_basic<Sqrt, 1>(r, Operation::sqrt);
    add_basic<Rcp, 1>(r, Operation::rcp);
    add_rounded<Ftz<Rcp>, double, 1>(r, Operation::rcp, {Flag::ftz});
    add_unrounded<Rsqrt>(r, Operation::rsqrt);
    add_unrounded<Rsqrt, 1, double>(r, Operation::rsqrt);
    add_unrounded<Sin>(r, Operation::sin);
    add_unrounded<Cos>(r, Operation::cos);
    add_unrounded<Lg2>(r, Operation::lg2);
    add_unrounded<Ex2>(r, Operation::ex2);
    add_unrounded<Tanh>(r, Operation::tanh);
    add_unrounded<FNeg>(r, Operation::neg);
    add_unrounded<FAbs>(r, Operation::abs);
    r.add(Operation::neg, Type::f64, Type::none, {}, unary<FNeg, double>);
    r.add(Operation::abs, Type::f64, Type::none, {}, unary<FAbs, double>);
    r.add(Operation::copysign, Type::f32, Type::none, {}, binary<Copysign, float>);
    r.add(Operation::copysign, Type::f64, Type::none, {}, binary<Copysign, double>);

    add_extremes<FMin>(r, Operation::min);
    add_extremes<FMax>(r, Operation::max);

    add_comparisons<Eq>(r, Flag::eq);
    add_comparisons<CNe>(r, Flag::ne);
    add_comparisons<Lt>(r, Flag::lt);
    add_comparisons<Le>(r, Flag::le);
    add_comparisons<Gt>(r, Flag::gt);
    add_comparisons<Ge>(r, Flag::ge);
    add_comparisons<CEqu>(r, Flag::equ);
    add_comparisons<CNeu>(r, Flag::neu);
    add_comparisons<CLtu>(r, Flag::ltu);
    add_comparisons<CLeu>(r, Flag::leu);
    add_comparisons<CGtu>(r, Flag::gtu);
    add_comparisons<CGeu>(r, Flag::geu);
    add_comparisons<CNum>(r, Flag::num);
    add_comparisons<CNan>(r, Flag::is_nan);

    for_flags<Flag::finite, Flag::infinite, Flag::number, Flag::notanumber, Flag::normal, Flag::subnormal>(
        [&]<Flag F>() {
            r.add(Operation::testp, Type::f32, Type::none, {F}, test<Testp<F, float>, float>);
            r.add(Operation::testp, Type::f64, Type::none, {F}, test<Testp<F, double>, double>);
        });

    add_halves<Half>(r, Type::f16, Type::f16x2);
    add_halves<Brain>(r, Type::bf16, Type::bf16x2);
    // PTX has saturation and flushing for f16 and not for bf16.
    const auto add_fma = [&]<bool Saturate, bool Relu>(FlagSet flags) {
        using Flushing = SmallFma<Half, Saturate, Relu, true>;
        add_flushing<SmallFma<Half, Saturate, Relu>, 3, Flushing>(r, Operation::fma, flags);
    };
    add_fma.template operator()<false, false>({});
    add_fma.template operator()<false, true>({Flag::relu});
    add_fma.template operator()<true, false>({Flag::sat});
    add_flushing<Small<FAdd, Half>, 2>(r, Operation::add);
    add_flushing<Small<FSub, Half>, 2>(r, Operation::sub);
    add_flushing<Small<FMul, Half>, 2, FlushedProduct<false>>(r, Operation::mul);
    add_flushing<FNeg, 1>(r, Operation::neg);
    add_flushing<FAbs, 1>(r, Operation::abs);
    add_flushing<Small<Sat<FAdd>, Half>, 2>(r, Operation::add, {Flag::sat});
    add_flushing<Small<Sat<FSub>, Half>, 2>(r, Operation::sub, {Flag::sat});
    add_flushing<Small<Sat<FMul>, Half>, 2, FlushedProduct<true>>(r, Operation::mul, {Flag::sat});
    // PTX has ex2 of halves only without .ftz, and of bfloat16 only with it.
    add_small<SmallEx2<Half>, Half, 1>(r, Operation::ex2, {}, Type::f16, Type::f16x2);
    add_small<Ftz<SmallEx2<Brain>>, Brain, 1>(r, Operation::ex2, {Flag::ftz}, Type::bf16, Type::bf16x2);
}

}  // namespace emulated::machine::BASCULE_ISA
