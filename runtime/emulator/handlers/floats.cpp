// Floating-point arithmetic: exact where PTX says so, approximations correctly rounded from double.
#include <fenv.h>
#include <math.h>

#include "handlers/half.hpp"

namespace emulated::machine::BASCULE_ISA {
namespace {

// --- modifiers, as wrappers of an operation ----------------------------------------------------------------

inline float flushed(float v) {
    const std::uint32_t bits = bits_as<std::uint32_t>(v);
    return bits_as<float>((bits & 0x7f80'0000u) == 0 ? bits & 0x8000'0000u : bits);
}
inline double flushed(double v) {
    const std::uint64_t bits = bits_as<std::uint64_t>(v);
    return bits_as<double>((bits & 0x7ff0'0000'0000'0000ull) == 0 ? bits & (1ull << 63) : bits);
}
inline float saturated(float v) {
    const float low = v > 0.0f ? v : 0.0f;  // NaN becomes 0
    return low < 1.0f ? low : 1.0f;
}

template <class F>
struct Ftz {
    template <class T>
    static T run(T a) {
        return flushed(F::run(flushed(a)));
    }
    template <class T>
    static T run(T a, T b) {
        return flushed(F::run(flushed(a), flushed(b)));
    }
    template <class T>
    static T run(T a, T b, T c) {
        return flushed(F::run(flushed(a), flushed(b), flushed(c)));
    }
};
template <class F>
struct Sat {
    static float run(float a, float b) { return saturated(F::run(a, b)); }
    static float run(float a, float b, float c) { return saturated(F::run(a, b, c)); }
};
// For comparisons: the inputs only.
template <class F>
struct FtzInputs {
    static bool run(float a, float b) { return F::run(flushed(a), flushed(b)); }
};

// --- operations --------------------------------------------------------------------------------------------

struct FAdd {
    template <class T>
    static T run(T a, T b) {
        return a + b;
    }
};
struct FSub {
    template <class T>
    static T run(T a, T b) {
        return a - b;
    }
};
struct FMul {
    template <class T>
    static T run(T a, T b) {
        return a * b;
    }
};
struct FDiv {
    template <class T>
    static T run(T a, T b) {
        return a / b;
    }
};
struct Fma {
    static float run(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
    static double run(double a, double b, double c) { return __builtin_fma(a, b, c); }
};
struct Sqrt {
    static float run(float a) { return __builtin_sqrtf(a); }
    static double run(double a) { return __builtin_sqrt(a); }
};
struct Rcp {
    template <class T>
    static T run(T a) {
        return T(1) / a;
    }
};
struct Rsqrt {
    static float run(float a) { return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(a))); }
    static double run(double a) { return 1.0 / __builtin_sqrt(a); }
};
struct Sin {
    static float run(float a) { return static_cast<float>(::sin(static_cast<double>(a))); }
};
struct Cos {
    static float run(float a) { return static_cast<float>(::cos(static_cast<double>(a))); }
};
struct Lg2 {
    static float run(float a) { return static_cast<float>(::log2(static_cast<double>(a))); }
};
struct Ex2 {
    static float run(float a) { return static_cast<float>(::exp2(static_cast<double>(a))); }
};
struct Tanh {
    static float run(float a) { return static_cast<float>(::tanh(static_cast<double>(a))); }
};

struct FNeg {
    static float run(float a) { return bits_as<float>(bits_as<std::uint32_t>(a) ^ 0x8000'0000u); }
    static double run(double a) { return bits_as<double>(bits_as<std::uint64_t>(a) ^ (1ull << 63)); }
};
struct FAbs {
    static float run(float a) { return bits_as<float>(bits_as<std::uint32_t>(a) & 0x7fff'ffffu); }
    static double run(double a) { return bits_as<double>(bits_as<std::uint64_t>(a) & ~(1ull << 63)); }
};
struct Copysign {  // PTX: the sign of a, the magnitude of b
    static float run(float a, float b) {
        return bits_as<float>((bits_as<std::uint32_t>(a) & 0x8000'0000u) |
                              (bits_as<std::uint32_t>(b) & 0x7fff'ffffu));
    }
    static double run(double a, double b) {
        return bits_as<double>((bits_as<std::uint64_t>(a) & (1ull << 63)) |
                               (bits_as<std::uint64_t>(b) & ~(1ull << 63)));
    }
};

// The number wins over NaN, and -0 is less than +0; with NanWins a NaN gives the canonical one.
inline float canonical_nan(float) { return bits_as<float>(0x7fff'ffffu); }
inline double canonical_nan(double) { return bits_as<double>(0x7fff'ffff'ffff'ffffull); }
template <bool NanWins>
struct FMin {
    template <class T>
    static T run(T a, T b) {
        using U = typename BitsOf<sizeof(T)>::type;
        const T both = bits_as<T>(static_cast<U>(bits_as<U>(a) | bits_as<U>(b)));
        T r = a < b ? a : a == b ? both : b;
        if (a != a) r = NanWins ? canonical_nan(a) : b;
        if (b != b) r = NanWins || a != a ? canonical_nan(a) : a;
        return r;
    }
};
template <bool NanWins>
struct FMax {
    template <class T>
    static T run(T a, T b) {
        using U = typename BitsOf<sizeof(T)>::type;
        const T both = bits_as<T>(static_cast<U>(bits_as<U>(a) & bits_as<U>(b)));
        T r = a > b ? a : a == b ? both : b;
        if (a != a) r = NanWins ? canonical_nan(a) : b;
        if (b != b) r = NanWins || a != a ? canonical_nan(a) : a;
        return r;
    }
};

struct CEq {
    template <class T>
    static bool run(T a, T b) {
        return a == b;
    }
};
struct CNe {
    template <class T>
    static bool run(T a, T b) {
        return a < b || a > b;
    }
};  // false for NaN
struct CLt {
    template <class T>
    static bool run(T a, T b) {
        return a < b;
    }
};
struct CLe {
    template <class T>
    static bool run(T a, T b) {
        return a <= b;
    }
};
struct CGt {
    template <class T>
    static bool run(T a, T b) {
        return a > b;
    }
};
struct CGe {
    template <class T>
    static bool run(T a, T b) {
        return a >= b;
    }
};
struct CEqu {
    template <class T>
    static bool run(T a, T b) {
        return !(a < b || a > b);
    }
};
struct CNeu {
    template <class T>
    static bool run(T a, T b) {
        return !(a == b);
    }
};
struct CLtu {
    template <class T>
    static bool run(T a, T b) {
        return !(a >= b);
    }
};
struct CLeu {
    template <class T>
    static bool run(T a, T b) {
        return !(a > b);
    }
};
struct CGtu {
    template <class T>
    static bool run(T a, T b) {
        return !(a <= b);
    }
};
struct CGeu {
    template <class T>
    static bool run(T a, T b) {
        return !(a < b);
    }
};
struct CNum {
    template <class T>
    static bool run(T a, T b) {
        return a == a && b == b;
    }
};
struct CNan {
    template <class T>
    static bool run(T a, T b) {
        return a != a || b != b;
    }
};

template <class T>
struct Parts;
template <>
struct Parts<float> {
    static constexpr std::uint32_t exponent = 0x7f80'0000u, magnitude = 0x7fff'ffffu;
};
template <>
struct Parts<double> {
    static constexpr std::uint64_t exponent = 0x7ff0'0000'0000'0000ull, magnitude = ~(1ull << 63);
};
template <Flag What, class T>
struct Testp {
    static bool run(T a) {
        using U = typename BitsOf<sizeof(T)>::type;
        const U m = bits_as<U>(a) & Parts<T>::magnitude, e = Parts<T>::exponent;
        switch (What) {
            case Flag::finite:
                return m < e;
            case Flag::infinite:
                return m == e;
            case Flag::number:
                return m <= e;
            case Flag::notanumber:
                return m > e;
            case Flag::normal:  // PTX counts zeros as normal
                return m < e && ((m & e) != 0 || m == 0);
            default:
                return (m & e) == 0 && m != 0;
        }
    }
};

// --- halves ------------------------------------------------------------------------------------------------
// Computed in float, which is wide enough that rounding twice changes nothing; fma in double.

template <class F, class H>
struct Small {
    static H run(H a) {
        H r;
        from_float(F::run(to_float(a)), r);
        return r;
    }
    static H run(H a, H b) {
        H r;
        from_float(F::run(to_float(a), to_float(b)), r);
        return r;
    }
};
template <class F, class H>
struct SmallSat {
    static H run(H a, H b) {
        H r;
        from_float(saturated(F::run(to_float(a), to_float(b))), r);
        return r;
    }
};
template <class H>
struct SmallFmaBase;
template <>
struct SmallFmaBase<Half> {
    static Half rounded_from(double v) { return {round_to_small<Flag::rn>(v, 10, 15)}; }
};
template <>
struct SmallFmaBase<Brain> {
    static Brain rounded_from(double v) { return {round_to_small<Flag::rn>(v, 7, 127)}; }
};
template <class H, bool Saturate, bool Relu>
struct SmallFma {
    static H run(H a, H b, H c) {
        const double product = static_cast<double>(to_float(a)) * static_cast<double>(to_float(b));
        const double addend = static_cast<double>(to_float(c));
        double sum = product + addend;
        // Round to odd: what the sum loses may decide a tie of the second rounding.
        const double back = sum - product, error = (product - (sum - back)) + (addend - back);
        if (error != 0 && sum == sum && (bits_as<std::uint64_t>(sum) & 1) == 0 && back - back == 0) {
            const bool grow = (error > 0) == (sum > 0);
            sum = bits_as<double>(bits_as<std::uint64_t>(sum) + (grow ? 1ull : ~0ull));
        }
        if (Saturate) sum = sum > 0 ? (sum < 1 ? sum : 1.0) : 0.0;
        if (Relu) sum = sum != sum ? sum : sum > 0 ? sum : 0.0;
        return SmallFmaBase<H>::rounded_from(sum);
    }
};
template <class H>
struct SmallNeg {
    static H run(H a) { return {static_cast<std::uint16_t>(a.bits ^ 0x8000)}; }
};
template <class H>
struct SmallAbs {
    static H run(H a) { return {static_cast<std::uint16_t>(a.bits & 0x7fff)}; }
};
template <class C, class H>
struct SmallCompare {
    static bool run(H a, H b) { return C::run(to_float(a), to_float(b)); }
};
// A comparison of f16 that says .ftz: subnormal inputs are zeros.
template <class C>
struct SmallFtzInputs {
    static float flushed(float v) { return __builtin_fabsf(v) < 0x1p-14f ? 0.0f : v; }
    static bool run(float a, float b) { return C::run(flushed(a), flushed(b)); }
};
inline Brain flushed(Brain b) {
    return {static_cast<std::uint16_t>(b.bits & 0x7f80 ? b.bits : b.bits & 0x8000)};
}
template <class F>
struct BrainFtz {
    static Brain run(Brain a) { return flushed(F::run(flushed(a))); }
};
template <class C, class H>
struct SmallSet {
    static H run(H a, H b) {
        H r;
        from_float(C::run(to_float(a), to_float(b)) ? 1.0f : 0.0f, r);
        return r;
    }
};

// Both halves of 32 bits.
template <class F, class H>
struct Twice {
    struct Pair {
        H low, high;
    };
    static Pair split(std::uint32_t v) {
        return {{static_cast<std::uint16_t>(v)}, {static_cast<std::uint16_t>(v >> 16)}};
    }
    static std::uint32_t join(H low, H high) {
        return low.bits | static_cast<std::uint32_t>(high.bits) << 16;
    }
    static std::uint32_t run(std::uint32_t a) {
        const Pair x = split(a);
        return join(F::run(x.low), F::run(x.high));
    }
    static std::uint32_t run(std::uint32_t a, std::uint32_t b) {
        const Pair x = split(a), y = split(b);
        return join(F::run(x.low, y.low), F::run(x.high, y.high));
    }
    static std::uint32_t run(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
        const Pair x = split(a), y = split(b), z = split(c);
        return join(F::run(x.low, y.low, z.low), F::run(x.high, y.high, z.high));
    }
};

// --- registration: every combination of modifiers that the table allows ------------------------------------

template <class F, class T, int Arity>
constexpr Handler elementwise() {
    if constexpr (Arity == 1)
        return unary<F, T, T>;
    else if constexpr (Arity == 2)
        return binary<F, T, T, T>;
    else
        return ternary<F, T, T, T, T>;
}

template <class F, class T, int Arity>
void add_rounded(Registry& r, Operation operation, FlagSet flags) {
    constexpr Handler plain = elementwise<F, T, Arity>();
    const auto with = [&](Flag flag) { return flags | FlagSet{flag}; };
    r.add(operation, TypeOf<T>::value, Type::none, flags, plain);
    r.add(operation, TypeOf<T>::value, Type::none, with(Flag::rz), rounded<FE_TOWARDZERO, plain>);
    r.add(operation, TypeOf<T>::value, Type::none, with(Flag::rm), rounded<FE_DOWNWARD, plain>);
    r.add(operation, TypeOf<T>::value, Type::none, with(Flag::rp), rounded<FE_UPWARD, plain>);
}

template <class F, int Arity>
void add_basic(Registry& r, Operation operation) {
    add_rounded<F, float, Arity>(r, operation, {});
    add_rounded<Ftz<F>, float, Arity>(r, operation, {Flag::ftz});
    add_rounded<F, double, Arity>(r, operation, {});
    if constexpr (Arity > 1 && !__is_same(F, FDiv)) {
        add_rounded<Sat<F>, float, Arity>(r, operation, {Flag::sat});
        add_rounded<Sat<Ftz<F>>, float, Arity>(r, operation, {Flag::sat, Flag::ftz});
    }
}

template <class F>
void add_approximate(Registry& r, Operation operation) {
    r.add(operation, Type::f32, Type::none, {}, unary<F, float, float>);
    r.add(operation, Type::f32, Type::none, {Flag::ftz}, unary<Ftz<F>, float, float>);
}

template <class C, class H>
void add_small_comparison(Registry& r, FlagSet flags, Type one, Type two) {
    using u32 = std::uint32_t;
    r.add(Operation::setp, one, Type::none, flags, compare<SmallCompare<C, H>, H>);
    r.add(Operation::set, two, two, flags, binary<Twice<SmallSet<C, H>, H>, u32, u32, u32>);
}

template <class C>
void add_comparison(Registry& r, Flag flag) {
    r.add(Operation::setp, Type::f32, Type::none, {flag}, compare<C, float>);
    r.add(Operation::setp, Type::f32, Type::none, {flag, Flag::ftz}, compare<FtzInputs<C>, float>);
    r.add(Operation::setp, Type::f64, Type::none, {flag}, compare<C, double>);
    add_small_comparison<C, Half>(r, {flag}, Type::f16, Type::f16x2);
    add_small_comparison<SmallFtzInputs<C>, Half>(r, {flag, Flag::ftz}, Type::f16, Type::f16x2);
    add_small_comparison<C, Brain>(r, {flag}, Type::bf16, Type::bf16x2);
}

template <class F, class H, int Arity>
void add_small(Registry& r, Operation operation, FlagSet flags, Type one, Type two) {
    r.add(operation, one, Type::none, flags, elementwise<F, H, Arity>());
    r.add(operation, two, Type::none, flags, elementwise<Twice<F, H>, std::uint32_t, Arity>());
}

template <class H>
void add_halves(Registry& r, Type one, Type two) {
    add_small<Small<FAdd, H>, H, 2>(r, Operation::add, {}, one, two);
    add_small<Small<FSub, H>, H, 2>(r, Operation::sub, {}, one, two);
    add_small<Small<FMul, H>, H, 2>(r, Operation::mul, {}, one, two);
    add_small<SmallFma<H, false, false>, H, 3>(r, Operation::fma, {}, one, two);
    add_small<SmallFma<H, false, true>, H, 3>(r, Operation::fma, {Flag::relu}, one, two);
    add_small<SmallNeg<H>, H, 1>(r, Operation::neg, {}, one, two);
    add_small<SmallAbs<H>, H, 1>(r, Operation::abs, {}, one, two);
    add_small<Small<FMin<false>, H>, H, 2>(r, Operation::min, {}, one, two);
    add_small<Small<FMax<false>, H>, H, 2>(r, Operation::max, {}, one, two);
    add_small<Small<FMin<true>, H>, H, 2>(r, Operation::min, {Flag::nan_wins}, one, two);
    add_small<Small<FMax<true>, H>, H, 2>(r, Operation::max, {Flag::nan_wins}, one, two);
    add_small<Small<Tanh, H>, H, 1>(r, Operation::tanh, {}, one, two);
}

template <Flag What>
void add_testp(Registry& r) {
    r.add(Operation::testp, Type::f32, Type::none, {What}, test<Testp<What, float>, float>);
    r.add(Operation::testp, Type::f64, Type::none, {What}, test<Testp<What, double>, double>);
}

template <class Min, class T>
void add_extreme(Registry& r, Operation operation, FlagSet flags) {
    r.add(operation, TypeOf<T>::value, Type::none, flags, binary<Min, T, T, T>);
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
    add_approximate<Rsqrt>(r, Operation::rsqrt);
    r.add(Operation::rsqrt, Type::f64, Type::none, {}, unary<Rsqrt, double, double>);
    r.add(Operation::rsqrt, Type::f64, Type::none, {Flag::ftz}, unary<Ftz<Rsqrt>, double, double>);
    add_approximate<Sin>(r, Operation::sin);
    add_approximate<Cos>(r, Operation::cos);
    add_approximate<Lg2>(r, Operation::lg2);
    add_approximate<Ex2>(r, Operation::ex2);
    add_approximate<Tanh>(r, Operation::tanh);
    add_approximate<FNeg>(r, Operation::neg);
    add_approximate<FAbs>(r, Operation::abs);
    r.add(Operation::neg, Type::f64, Type::none, {}, unary<FNeg, double, double>);
    r.add(Operation::abs, Type::f64, Type::none, {}, unary<FAbs, double, double>);
    r.add(Operation::copysign, Type::f32, Type::none, {}, binary<Copysign, float, float, float>);
    r.add(Operation::copysign, Type::f64, Type::none, {}, binary<Copysign, double, double, double>);

    add_extreme<FMin<false>, float>(r, Operation::min, {});
    add_extreme<FMax<false>, float>(r, Operation::max, {});
    add_extreme<FMin<true>, float>(r, Operation::min, {Flag::nan_wins});
    add_extreme<FMax<true>, float>(r, Operation::max, {Flag::nan_wins});
    add_extreme<Ftz<FMin<false>>, float>(r, Operation::min, {Flag::ftz});
    add_extreme<Ftz<FMax<false>>, float>(r, Operation::max, {Flag::ftz});
    add_extreme<Ftz<FMin<true>>, float>(r, Operation::min, {Flag::ftz, Flag::nan_wins});
    add_extreme<Ftz<FMax<true>>, float>(r, Operation::max, {Flag::ftz, Flag::nan_wins});
    add_extreme<FMin<false>, double>(r, Operation::min, {});
    add_extreme<FMax<false>, double>(r, Operation::max, {});

    add_comparison<CEq>(r, Flag::eq);
    add_comparison<CNe>(r, Flag::ne);
    add_comparison<CLt>(r, Flag::lt);
    add_comparison<CLe>(r, Flag::le);
    add_comparison<CGt>(r, Flag::gt);
    add_comparison<CGe>(r, Flag::ge);
    add_comparison<CEqu>(r, Flag::equ);
    add_comparison<CNeu>(r, Flag::neu);
    add_comparison<CLtu>(r, Flag::ltu);
    add_comparison<CLeu>(r, Flag::leu);
    add_comparison<CGtu>(r, Flag::gtu);
    add_comparison<CGeu>(r, Flag::geu);
    add_comparison<CNum>(r, Flag::num);
    add_comparison<CNan>(r, Flag::is_nan);

    add_testp<Flag::finite>(r);
    add_testp<Flag::infinite>(r);
    add_testp<Flag::number>(r);
    add_testp<Flag::notanumber>(r);
    add_testp<Flag::normal>(r);
    add_testp<Flag::subnormal>(r);

    add_halves<Half>(r, Type::f16, Type::f16x2);
    add_halves<Brain>(r, Type::bf16, Type::bf16x2);
    // PTX saturates and compares with .ftz f16 only.
    const auto half = Type::f16, pair = Type::f16x2;
    add_small<SmallSat<FAdd, Half>, Half, 2>(r, Operation::add, {Flag::sat}, half, pair);
    add_small<SmallSat<FSub, Half>, Half, 2>(r, Operation::sub, {Flag::sat}, half, pair);
    add_small<SmallSat<FMul, Half>, Half, 2>(r, Operation::mul, {Flag::sat}, half, pair);
    add_small<SmallFma<Half, true, false>, Half, 3>(r, Operation::fma, {Flag::sat}, half, pair);
    // PTX has ex2 of halves without .ftz, and of bfloat16 with it.
    add_small<Small<Ex2, Half>, Half, 1>(r, Operation::ex2, {}, Type::f16, Type::f16x2);
    add_small<BrainFtz<Small<Ex2, Brain>>, Brain, 1>(r, Operation::ex2, {Flag::ftz}, Type::bf16,
                                                     Type::bf16x2);
}

}  // namespace emulated::machine::BASCULE_ISA
