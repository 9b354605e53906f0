// Handlers of cvt, for every pair of types.
#include <fenv.h>
#include <type_traits>

#include "handlers/half.hpp"

namespace emulated::machine::BASCULE_ISA {
namespace {

// The register type of a value of type T: eight bits use the low half of a 16-bit register.
template <class T>
using In = std::conditional_t<std::is_same_v<T, u8>, u16, std::conditional_t<std::is_same_v<T, s8>, s16, T>>;

template <class T>
constexpr bool is_small = std::is_same_v<T, Half> || std::is_same_v<T, Brain>;

// The value as the processor computes with it: halves become floats.
template <class T>
inline auto number(T a) {
    if constexpr (is_small<T>)
        return to_float(a);
    else
        return a;
}

// --- integers ----------------------------------------------------------------------------------------------

template <class D, class S>
struct Resize {
    In<D> operator()(In<S> a) const { return static_cast<In<D>>(static_cast<D>(static_cast<S>(a))); }
};
// Conversions that do the same to the bits share one handler. The sign of the source matters only for a wider result, and
// the sign of the result only for eight bits, which are extended to a 16-bit register.
template <class D, class S>
constexpr Lockstep resize() {
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
// Rounded, then clamped. NaN gives 0, or only the highest bit if one of the types has 64 bits.

inline float integral(float v, Flag direction) {
    return direction == Flag::rzi   ? __builtin_truncf(v)
           : direction == Flag::rmi ? __builtin_floorf(v)
           : direction == Flag::rpi ? __builtin_ceilf(v)
                                    : __builtin_rintf(v);
}
inline double integral(double v, Flag direction) {
    return direction == Flag::rzi   ? __builtin_trunc(v)
           : direction == Flag::rmi ? __builtin_floor(v)
           : direction == Flag::rpi ? __builtin_ceil(v)
                                    : __builtin_rint(v);
}

template <class D, class S, Flag R>
struct ToInteger {
    In<D> operator()(S given) const {
        const auto a = number(given);
        using F = std::remove_const_t<decltype(a)>;
        // Truncation needs no separate rounding.
        const F v = R == Flag::rzi ? a : integral(a, R);
        const F below = static_cast<F>(lowest<D>);
        // One more than the highest value, which is a power of two and therefore exact.
        const F above =
            static_cast<F>(BitsOf<D>(1) << (8 * sizeof(D) - 1)) * static_cast<F>(is_signed<D> ? 1 : 2);
        constexpr bool wide = sizeof(F) == 8 || sizeof(D) == 8;
        if (v != v) return wide ? static_cast<In<D>>(static_cast<D>(BitsOf<D>(1) << (8 * sizeof(D) - 1))) : 0;
        if (v < below) return static_cast<In<D>>(lowest<D>);
        if (v >= above) return static_cast<In<D>>(highest<D>);
        return static_cast<In<D>>(static_cast<D>(v));
    }
};

// --- to floats ---------------------------------------------------------------------------------------------

// 64-bit integers do not fit a double. Rounding to odd keeps what decides ties in the second rounding.
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

// Converts from any type. A half or bfloat16 is rounded in direction R, a float or double in the processor's rounding mode.
template <class D, class S, Flag R = Flag::rn>
struct ToFloat {
    D operator()(In<S> given) const {
        if constexpr (!is_small<D>)
            return static_cast<D>(number(static_cast<S>(given)));
        else if constexpr (is_small<S>)
            return given;  // the same type
        else if constexpr (std::is_integral_v<S>)
            return rounded_to_small<D, R>(odd_double(static_cast<S>(given)));
        else if constexpr (std::is_same_v<S, float> && R == Flag::rn)
            return from_float<D>(given);
        else
            return rounded_to_small<D, R>(static_cast<double>(given));
    }
};

template <Flag R>
struct Integral {
    template <class T>
    T operator()(T a) const {
        if constexpr (is_small<T>)
            return from_float<T>(integral(to_float(a), R));
        else
            return integral(a, R);
    }
};

template <Flag R>
constexpr int processor_mode = R == Flag::rz   ? FE_TOWARDZERO
                               : R == Flag::rm ? FE_DOWNWARD
                               : R == Flag::rp ? FE_UPWARD
                                               : FE_TONEAREST;

// .ftz as ptxas implements it on an H100: a double becomes zero unless rounding it to 24 bits gives a normal number. If the
// rounding is away from zero, that is any number greater than 2^-126 - 2^-150.
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

// --- registration ------------------------------------------------------------------------------------------

template <class S, class D>
void integer_pair(Registry& r) {
    const Type d = type_of<D>, s = type_of<S>;
    r.add(Operation::cvt, d, s, {}, resize<D, S>());
    if constexpr (!holds_all_of<D, S>)  // otherwise PTX has no .sat
        r.add(Operation::cvt, d, s, {Flag::sat}, unary<ResizeSaturated<D, S>, In<D>, In<S>>);
}

template <class S, class D, Flag R>
void float_to_integer(Registry& r) {
    constexpr Lockstep plain = unary<ToInteger<D, S, R>, In<D>, S>;
    const Type d = type_of<D>, s = type_of<S>;
    r.add(Operation::cvt, d, s, {R}, plain);
    r.add(Operation::cvt, d, s, {R, Flag::sat}, plain);
    if constexpr (std::is_same_v<S, float>) {
        // Only rounding away from zero gives a subnormal another result than 0.
        constexpr bool sees_subnormals = R == Flag::rmi || R == Flag::rpi;
        using Flushed =
            std::conditional_t<sees_subnormals, FtzInputs<ToInteger<D, S, R>>, ToInteger<D, S, R>>;
        constexpr Lockstep flush = unary<Flushed, In<D>, S>;
        r.add(Operation::cvt, d, s, {R, Flag::ftz}, flush);
        r.add(Operation::cvt, d, s, {R, Flag::ftz, Flag::sat}, flush);
    }
}

// Calls visit.operator()<R>(flags) for each direction. Rounding to nearest is not a flag in the key.
template <class Visit>
void each_direction(const Visit& visit) {
    visit.template operator()<Flag::rn>({});
    for_flags<Flag::rz, Flag::rm, Flag::rp>([&]<Flag R>() { visit.template operator()<R>({R}); });
}

// Applies F from S to D. The processor rounds floats and doubles in direction R.
template <class F, class D, class S, Flag R>
constexpr Lockstep directed() {
    constexpr Handler plain = unary<F, D, In<S>>;
    if constexpr (is_small<D> || R == Flag::rn)
        return Lockstep(plain);
    else
        return rounded<processor_mode<R>, plain>;
}

template <class D, class S>
void integer_to_float(Registry& r) {
    each_direction([&]<Flag R>(FlagSet flags) {
        using Rounded = ToFloat<D, S, is_small<D> ? R : Flag::rn>;
        r.add(Operation::cvt, type_of<D>, type_of<S>, flags, directed<Rounded, D, S, R>());
        // Integers in [0, 1] convert exactly.
        r.add(Operation::cvt, type_of<D>, type_of<S>, flags | FlagSet{Flag::sat},
              unary<Sat<ToFloat<D, S>>, D, In<S>>);
    });
}

// Values that are rounded to a half are clamped first, which gives the same result at less cost.
template <class F, class D, class S>
using Saturated = std::conditional_t<is_small<D> && std::is_floating_point_v<S>, SatInputs<F>, Sat<F>>;

// Registers the conversion with and without .sat, and with .ftz if `Flushing` is given.
template <class D, class S, class F, class Flushing = void, Flag R = Flag::rn>
void with_modifiers(Registry& r, FlagSet flags = {}) {
    const auto add = [&]<class Modified>(FlagSet modifiers) {
        r.add(Operation::cvt, type_of<D>, type_of<S>, flags | modifiers, directed<Modified, D, S, R>());
    };
    const auto add_both = [&]<class Unclamped>(FlagSet modifiers) {
        add.template operator()<Unclamped>(modifiers);
        if constexpr (!std::is_same_v<D, Brain> && !std::is_same_v<S, Brain>)  // PTX has no .sat of bfloat16
            add.template operator()<Saturated<Unclamped, D, S>>(modifiers | FlagSet{Flag::sat});
    };
    add_both.template operator()<F>({});
    if constexpr (!std::is_void_v<Flushing>) add_both.template operator()<Flushing>({Flag::ftz});
}

template <class T, Flag R>
void integral_rounding(Registry& r) {
    using Flushing = std::conditional_t<is_small<T>, void, Ftz<Integral<R>>>;
    with_modifiers<T, T, Integral<R>, Flushing>(r, {R});
    for_types<u8, s8, u16, s16, u32, s32, u64, s64>([&]<class D>() { float_to_integer<T, D, R>(r); });
}

template <class S>
void from_integer(Registry& r) {
    for_types<u8, s8, u16, s16, u32, s32, u64, s64>([&]<class D>() { integer_pair<S, D>(r); });
    for_types<float, double, Half, Brain>([&]<class D>() { integer_to_float<D, S>(r); });
}

// PTX says that .ftz flushes a subnormal float here too. GPUs do so only for bfloat16. For f16, a subnormal float
// rounded away from zero gives the smallest subnormal half.
template <class H, Flag R>
void narrow_float(Registry& r, FlagSet flags) {
    using Rounded = ToFloat<H, float, R>;
    using Flushing = std::conditional_t<std::is_same_v<H, Brain>, FtzInputs<Rounded>, Rounded>;
    with_modifiers<H, float, Rounded, Flushing, R>(r, flags);
}

}  // namespace

void register_conversions(Registry& r) {
    for_types<u8, s8, u16, s16, u32, s32, u64, s64>([&]<class S>() { from_integer<S>(r); });
    for_flags<Flag::rni, Flag::rzi, Flag::rmi, Flag::rpi>([&]<Flag R>() {
        for_types<float, double, Half, Brain>([&]<class T>() { integral_rounding<T, R>(r); });
    });
    each_direction([&]<Flag R>(FlagSet flags) {
        with_modifiers<float, double, ToFloat<float, double>, FtzNarrowed<processor_mode<R>>, R>(r, flags);
        narrow_float<Half, R>(r, flags);
        narrow_float<Brain, R>(r, flags);
        with_modifiers<Half, double, ToFloat<Half, double, R>, void, R>(r, flags);
    });
    with_modifiers<float, float, ToFloat<float, float>, Ftz<ToFloat<float, float>>>(r);
    with_modifiers<double, double, ToFloat<double, double>, Ftz<ToFloat<double, double>>>(r);
    with_modifiers<double, float, ToFloat<double, float>, Ftz<ToFloat<double, float>>>(r);
    // Every half is zero or a normal float, so .ftz has no effect.
    with_modifiers<float, Half, ToFloat<float, Half>, ToFloat<float, Half>>(r);
    with_modifiers<float, Brain, ToFloat<float, Brain>, FtzInputs<ToFloat<float, Brain>>>(r);
    with_modifiers<double, Half, ToFloat<double, Half>>(r);
    with_modifiers<double, Brain, ToFloat<double, Brain>>(r);
    with_modifiers<Half, Half, ToFloat<Half, Half>>(r);
    with_modifiers<Brain, Brain, ToFloat<Brain, Brain>>(r);
}

}  // namespace emulated::machine::BASCULE_ISA
