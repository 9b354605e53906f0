// cvt between every pair of types.
#include <fenv.h>
#include <type_traits>

#include "handlers/half.hpp"

namespace emulated::machine::BASCULE_ISA {
namespace {

// What a value of T lies in: eight bits lie in the low half of a 16-bit register.
template <class T>
using In = std::conditional_t<sizeof(T) == 1, std::conditional_t<is_signed<T>, s16, u16>, T>;

// --- integers ----------------------------------------------------------------------------------------------

template <class D, class S>
struct Resize {
    In<D> operator()(In<S> a) const { return static_cast<In<D>>(static_cast<D>(static_cast<S>(a))); }
};
// Conversions that do the same to the bits share one handler. Only a wider result depends on the sign of the
// source, and only a result of eight bits, which lies in a wider register, on its own sign.
template <class D, class S>
constexpr Handler resize() {
    using Result = std::conditional_t<sizeof(D) == 1, D, BitsOf<D>>;
    using Source = std::conditional_t<(sizeof(D) > sizeof(S)), S, BitsOf<S>>;
    return unary<Resize<Result, Source>, In<Result>, In<Source>>;
}
template <class D, class S>
constexpr bool holds_all_of = sizeof(D) > sizeof(S) ? is_signed<D> || !is_signed<S>
                                                    : sizeof(D) == sizeof(S) && is_signed<D> == is_signed<S>;
template <class D, class S>
struct ResizeSaturated {
    In<D> operator()(In<S> from) const {
        const S a = static_cast<S>(from);
        if (is_signed<S> && a < 0) {
            if (!is_signed<D>) return 0;
            return static_cast<s64>(a) < static_cast<s64>(lowest<D>) ? In<D>(lowest<D>) : In<D>(a);
        }
        return static_cast<u64>(a) > static_cast<u64>(highest<D>) ? In<D>(highest<D>) : In<D>(a);
    }
};

// --- floats to integers ------------------------------------------------------------------------------------
// Rounded, then clamped; NaN is 0, or the highest bit alone where 64 bits are involved.

template <Flag R>
inline float integral(float v) {
    if constexpr (R == Flag::rzi)
        return __builtin_truncf(v);
    else if constexpr (R == Flag::rmi)
        return __builtin_floorf(v);
    else if constexpr (R == Flag::rpi)
        return __builtin_ceilf(v);
    else
        return __builtin_rintf(v);
}
template <Flag R>
inline double integral(double v) {
    if constexpr (R == Flag::rzi)
        return __builtin_trunc(v);
    else if constexpr (R == Flag::rmi)
        return __builtin_floor(v);
    else if constexpr (R == Flag::rpi)
        return __builtin_ceil(v);
    else
        return __builtin_rint(v);
}

template <class D, class S, Flag R>
struct ToInteger {
    In<D> operator()(S a) const {
        // Truncation needs no rounding first, and an exact result does not care.
        const S v = R == Flag::rzi ? a : integral<R>(a);
        const S below = static_cast<S>(lowest<D>);
        // One more than the highest value: a power of two, so exact.
        const S above =
            static_cast<S>(BitsOf<D>(1) << (8 * sizeof(D) - 1)) * static_cast<S>(is_signed<D> ? 1 : 2);
        constexpr bool wide = sizeof(S) == 8 || sizeof(D) == 8;
        if (v != v) return wide ? static_cast<In<D>>(static_cast<D>(BitsOf<D>(1) << (8 * sizeof(D) - 1))) : 0;
        if (v < below) return static_cast<In<D>>(lowest<D>);
        if (v >= above) return static_cast<In<D>>(highest<D>);
        return static_cast<In<D>>(static_cast<D>(v));
    }
};
template <class D, Flag R, class H>
struct SmallToInteger {
    In<D> operator()(H a) const { return ToInteger<D, float, R>{}(to_float(a)); }
};

// --- integers to floats ------------------------------------------------------------------------------------

template <class D, class S>
struct FromInteger {
    D operator()(In<S> a) const { return static_cast<D>(static_cast<S>(a)); }
};
// 64-bit integers do not fit a double: what rounding to odd keeps decides ties of the second rounding.
template <class S>
inline double odd_double(S v) {
    const bool negative = is_signed<S> && v < 0;
    u64 m = negative ? 0 - static_cast<u64>(v) : static_cast<u64>(v);
    if (m >> 53) {
        const unsigned drop = 11u - static_cast<unsigned>(__builtin_clzll(m));
        const u64 lost = m & ((1ull << drop) - 1);
        m = (m >> drop | (lost != 0 ? 1u : 0u)) << drop;
    }
    const double r = static_cast<double>(m);
    return negative ? -r : r;
}
template <class H, class S, Flag R>
struct SmallFromInteger {
    H operator()(In<S> a) const { return rounded_to_small<H, R>(odd_double<S>(static_cast<S>(a))); }
};

// --- between floats ----------------------------------------------------------------------------------------

template <class D, class S>
struct Resized {
    D operator()(S a) const { return static_cast<D>(a); }
};
// .ftz as ptxas makes it for an H100: a double becomes zero unless it is rounded, to 24 bits, to a normal number. Where the
// rounding is away from zero, that is whatever is greater than 2^-126 - 2^-150.
template <int Mode>
struct FtzNarrowed {
    float operator()(double a) const {
        const double least = Mode == FE_TONEAREST                        ? 0x1.ffffffp-127
                             : Mode == (a < 0 ? FE_DOWNWARD : FE_UPWARD) ? 0x1.fffffe0000001p-127
                                                                         : 0x1p-126;
        return __builtin_fabs(a) < least ? __builtin_copysignf(0.0f, static_cast<float>(a))
                                         : static_cast<float>(a);
    }
};
template <class T, Flag R>
struct Integral {
    T operator()(T a) const { return integral<R>(a); }
};
template <class H, Flag R>
struct SmallIntegral {
    H operator()(H a) const { return from_float<H>(integral<R>(to_float(a))); }
};
template <class H, class S, Flag R>
struct ToSmall {
    H operator()(S a) const {
        if constexpr (__is_same(S, float) && R == Flag::rn) {
            return from_float<H>(a);
        } else {
            return rounded_to_small<H, R>(static_cast<double>(a));
        }
    }
};
template <class H, class S, Flag R>
struct ToSmallSat {
    H operator()(S a) const { return ToSmall<H, S, R>{}(saturated(a)); }
};
template <class D, class H>
struct FromSmall {
    D operator()(H a) const { return static_cast<D>(to_float(a)); }
};
using Same = decltype([]<class T>(T a) -> T { return a; });
template <class F, class H>
struct SmallSat {
    template <class A>
    H operator()(A a) const {
        return from_float<H>(saturated(to_float(F{}(a))));
    }
};

// --- registration ------------------------------------------------------------------------------------------

template <class S, class D>
void integer_pair(Registry& r) {
    const Type d = type_of<D>, s = type_of<S>;
    r.add(Operation::cvt, d, s, {}, resize<D, S>());
    if constexpr (!holds_all_of<D, S>)  // else PTX has no .sat
        r.add(Operation::cvt, d, s, {Flag::sat}, unary<ResizeSaturated<D, S>, In<D>, In<S>>);
}

template <class S, class D, Flag R>
void float_to_integer(Registry& r) {
    constexpr Handler plain = unary<ToInteger<D, S, R>, In<D>, S>;
    const Type d = type_of<D>, s = type_of<S>;
    r.add(Operation::cvt, d, s, {R}, plain);
    r.add(Operation::cvt, d, s, {R, Flag::sat}, plain);
    if constexpr (sizeof(S) == 4) {
        // Only a rounding away from zero makes anything but 0 of a subnormal.
        constexpr bool sees_subnormals = R == Flag::rmi || R == Flag::rpi;
        using Flushed =
            std::conditional_t<sees_subnormals, FtzInputs<ToInteger<D, S, R>>, ToInteger<D, S, R>>;
        constexpr Handler flush = unary<Flushed, In<D>, S>;
        r.add(Operation::cvt, d, s, {R, Flag::ftz}, flush);
        r.add(Operation::cvt, d, s, {R, Flag::ftz, Flag::sat}, flush);
    }
}
template <class H, class D, Flag R>
void small_to_integer(Registry& r, Type small) {
    const Type d = type_of<D>;
    r.add(Operation::cvt, d, small, {R}, unary<SmallToInteger<D, R, H>, In<D>, H>);
    r.add(Operation::cvt, d, small, {R, Flag::sat}, unary<SmallToInteger<D, R, H>, In<D>, H>);
}

constexpr FlagSet saturating[] = {
    {Flag::sat}, {Flag::sat, Flag::rz}, {Flag::sat, Flag::rm}, {Flag::sat, Flag::rp}};

template <class D, class S>
void integer_to_float(Registry& r) {
    constexpr Handler plain = unary<FromInteger<D, S>, D, In<S>>;
    constexpr Handler clamped = unary<Sat<FromInteger<D, S>>, D, In<S>>;
    const Type d = type_of<D>, s = type_of<S>;
    r.add(Operation::cvt, d, s, {}, plain);
    r.add(Operation::cvt, d, s, {Flag::rz}, rounded<FE_TOWARDZERO, plain>);
    r.add(Operation::cvt, d, s, {Flag::rm}, rounded<FE_DOWNWARD, plain>);
    r.add(Operation::cvt, d, s, {Flag::rp}, rounded<FE_UPWARD, plain>);
    for (const FlagSet& flags : saturating)
        r.add(Operation::cvt, d, s, flags, clamped);  // integers in [0, 1] are exact
}
template <class H, class S>
void integer_to_small(Registry& r, Type small) {
    const Type s = type_of<S>;
    r.add(Operation::cvt, small, s, {}, unary<SmallFromInteger<H, S, Flag::rn>, H, In<S>>);
    r.add(Operation::cvt, small, s, {Flag::rz}, unary<SmallFromInteger<H, S, Flag::rz>, H, In<S>>);
    r.add(Operation::cvt, small, s, {Flag::rm}, unary<SmallFromInteger<H, S, Flag::rm>, H, In<S>>);
    r.add(Operation::cvt, small, s, {Flag::rp}, unary<SmallFromInteger<H, S, Flag::rp>, H, In<S>>);
    using Rounded = SmallFromInteger<H, S, Flag::rn>;
    for (const FlagSet& flags : saturating)
        r.add(Operation::cvt, small, s, flags, unary<SmallSat<Rounded, H>, H, In<S>>);  // 0 and 1 are exact
}

template <class D, class S, class F, int Mode = FE_TONEAREST, class Flushing = Ftz<F>>
void with_modifiers(Registry& r, FlagSet flags) {
    const auto add = [&]<class Modified>(FlagSet modifiers) {
        constexpr Handler plain = unary<Modified, D, S>;
        constexpr Handler handler = Mode == FE_TONEAREST ? plain : rounded<Mode, plain>;
        r.add(Operation::cvt, type_of<D>, type_of<S>, flags | modifiers, handler);
    };
    add.template operator()<F>({});
    add.template operator()<Sat<F>>({Flag::sat});
    add.template operator()<Flushing>({Flag::ftz});
    add.template operator()<Sat<Flushing>>({Flag::ftz, Flag::sat});
}

template <class H, class S, Flag R>
void to_small(Registry& r, Type small, FlagSet flags) {
    const Type s = type_of<S>;
    r.add(Operation::cvt, small, s, flags, unary<ToSmall<H, S, R>, H, S>);
    r.add(Operation::cvt, small, s, flags | FlagSet{Flag::sat}, unary<ToSmallSat<H, S, R>, H, S>);
    if constexpr (__is_same(S, float)) {
        // PTX has .ftz flush a subnormal source here too; GPUs do so for bfloat16 alone, and a half from a subnormal
        // float is the least one if rounded away from zero.
        constexpr bool flushes = __is_same(H, Brain);
        using Plain = std::conditional_t<flushes, FtzInputs<ToSmall<H, S, R>>, ToSmall<H, S, R>>;
        using Clamped = std::conditional_t<flushes, FtzInputs<ToSmallSat<H, S, R>>, ToSmallSat<H, S, R>>;
        const FlagSet flush = flags | FlagSet{Flag::ftz};
        r.add(Operation::cvt, small, s, flush, unary<Plain, H, S>);
        r.add(Operation::cvt, small, s, flush | FlagSet{Flag::sat}, unary<Clamped, H, S>);
    }
}
template <class H, class S>
void to_small_all(Registry& r, Type small) {
    to_small<H, S, Flag::rn>(r, small, {});
    to_small<H, S, Flag::rz>(r, small, {Flag::rz});
    to_small<H, S, Flag::rm>(r, small, {Flag::rm});
    to_small<H, S, Flag::rp>(r, small, {Flag::rp});
}

template <class H, Flag R>
void small_integral(Registry& r, Type small) {
    r.add(Operation::cvt, small, small, {R}, unary<SmallIntegral<H, R>, H>);
    r.add(Operation::cvt, small, small, {R, Flag::sat}, unary<SmallSat<SmallIntegral<H, R>, H>, H>);
    for_types<u8, s8, u16, s16, u32, s32, u64, s64>([&]<class D>() { small_to_integer<H, D, R>(r, small); });
}

template <Flag R>
void integral_rounding(Registry& r) {
    with_modifiers<float, float, Integral<float, R>>(r, {R});
    with_modifiers<double, double, Integral<double, R>>(r, {R});
    for_types<u8, s8, u16, s16, u32, s32, u64, s64>([&]<class D>() {
        float_to_integer<float, D, R>(r);
        float_to_integer<double, D, R>(r);
    });
    small_integral<Half, R>(r, Type::f16);
    small_integral<Brain, R>(r, Type::bf16);
}

template <class S>
void from_integer(Registry& r) {
    for_types<u8, s8, u16, s16, u32, s32, u64, s64>([&]<class D>() { integer_pair<S, D>(r); });
    integer_to_float<float, S>(r);
    integer_to_float<double, S>(r);
    integer_to_small<Half, S>(r, Type::f16);
    integer_to_small<Brain, S>(r, Type::bf16);
}

}  // namespace

void register_conversions(Registry& r) {
    for_types<u8, s8, u16, s16, u32, s32, u64, s64>([&]<class S>() { from_integer<S>(r); });
    for_flags<Flag::rni, Flag::rzi, Flag::rmi, Flag::rpi>([&]<Flag R>() { integral_rounding<R>(r); });

    with_modifiers<float, float, Same>(r, {});
    with_modifiers<double, double, Same>(r, {});
    with_modifiers<double, float, Resized<double, float>>(r, {});
    using Narrowed = Resized<float, double>;
    const auto narrow = [&]<int Mode>(FlagSet flags) {
        with_modifiers<float, double, Narrowed, Mode, FtzNarrowed<Mode>>(r, flags);
    };
    narrow.template operator()<FE_TONEAREST>({});
    narrow.template operator()<FE_TOWARDZERO>({Flag::rz});
    narrow.template operator()<FE_DOWNWARD>({Flag::rm});
    narrow.template operator()<FE_UPWARD>({Flag::rp});

    to_small_all<Half, float>(r, Type::f16);
    to_small_all<Half, double>(r, Type::f16);
    to_small_all<Brain, float>(r, Type::bf16);
    // Every half is zero or a normal float: .ftz finds nothing to flush.
    for (const FlagSet& flags : {FlagSet{}, FlagSet{Flag::ftz}}) {
        using FromHalf = FromSmall<float, Half>;
        r.add(Operation::cvt, Type::f32, Type::f16, flags, unary<FromHalf, float, Half>);
        r.add(Operation::cvt, Type::f32, Type::f16, flags | FlagSet{Flag::sat},
              unary<Sat<FromHalf>, float, Half>);
    }
    r.add(Operation::cvt, Type::f64, Type::f16, {}, unary<FromSmall<double, Half>, double, Half>);
    r.add(Operation::cvt, Type::f64, Type::f16, {Flag::sat},
          unary<Sat<FromSmall<double, Half>>, double, Half>);
    r.add(Operation::cvt, Type::f32, Type::bf16, {}, unary<FromSmall<float, Brain>, float, Brain>);
    r.add(Operation::cvt, Type::f32, Type::bf16, {Flag::ftz},
          unary<FtzInputs<FromSmall<float, Brain>>, float, Brain>);
    r.add(Operation::cvt, Type::f64, Type::bf16, {}, unary<FromSmall<double, Brain>, double, Brain>);
    r.add(Operation::cvt, Type::f16, Type::f16, {}, unary<Same, Half>);
    r.add(Operation::cvt, Type::f16, Type::f16, {Flag::sat}, unary<SmallSat<Same, Half>, Half>);
    r.add(Operation::cvt, Type::bf16, Type::bf16, {}, unary<Same, Brain>);
}

}  // namespace emulated::machine::BASCULE_ISA
