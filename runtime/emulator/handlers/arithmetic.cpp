// Handlers of integer arithmetic, bits, predicates, selection and movement.
#include <type_traits>

#include "handlers/simd.hpp"

namespace emulated::machine::BASCULE_ISA {
namespace {

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;
/// The integer of the same sign and twice the width.
template <class T>
using Wide = std::conditional_t<sizeof(T) == 2, std::conditional_t<is_signed<T>, s32, u32>,
                                std::conditional_t<sizeof(T) == 4, std::conditional_t<is_signed<T>, s64, u64>,
                                                   std::conditional_t<is_signed<T>, s128, u128>>>;
template <class T>
constexpr unsigned bit_count = 8 * sizeof(T);
template <class T>
using Unsigned = BitsOf<T>;
// Wrapping arithmetic goes through unsigned types: overflow is defined in PTX.
using Add = decltype([]<class T>(T a, T b) -> T { return static_cast<T>(Unsigned<T>(a) + Unsigned<T>(b)); });
using Sub = decltype([]<class T>(T a, T b) -> T { return static_cast<T>(Unsigned<T>(a) - Unsigned<T>(b)); });
using MulLo = decltype([]<class T>(T a, T b) -> T {
    using Product = std::conditional_t<sizeof(T) == 4, u32, u64>;
    return static_cast<T>(Product(Unsigned<T>(a)) * Product(Unsigned<T>(b)));
});
using MulHi = decltype([]<class T>(T a, T b) -> T {
    return static_cast<T>((Wide<T>(a) * Wide<T>(b)) >> bit_count<T>);
});
using MulWide = decltype([]<class T>(T a, T b) -> Wide<T> { return Wide<T>(a) * Wide<T>(b); });
using MadLo = decltype([]<class T>(T a, T b, T c) -> T { return Add{}(MulLo{}(a, b), c); });
using MadHi = decltype([]<class T>(T a, T b, T c) -> T { return Add{}(MulHi{}(a, b), c); });
using MadWide = decltype([]<class T>(T a, T b, Wide<T> c) -> Wide<T> { return Add{}(MulWide{}(a, b), c); });
using AddSaturated = decltype([](s32 a, s32 b) -> s32 {
    s32 r;
    if (!__builtin_add_overflow(a, b, &r)) return r;
    return b < 0 ? lowest<s32> : highest<s32>;
});
using SubSaturated = decltype([](s32 a, s32 b) -> s32 {
    s32 r;
    if (!__builtin_sub_overflow(a, b, &r)) return r;
    return b > 0 ? lowest<s32> : highest<s32>;
});
template <class T>
s64 low_24(T a) {
    return is_signed<T> ? s64(s32(u32(a) << 8) >> 8) : s64(u32(a) & 0xffffff);
}
using Mul24Lo = decltype([]<class T>(T a, T b) -> T { return static_cast<T>(low_24(a) * low_24(b)); });
using Mul24Hi = decltype([]<class T>(T a, T b) -> T {
    return static_cast<T>((low_24(a) * low_24(b)) >> 16);
});
using Mad24Lo = decltype([]<class T>(T a, T b, T c) -> T { return Add{}(Mul24Lo{}(a, b), c); });
using Mad24Hi = decltype([]<class T>(T a, T b, T c) -> T { return Add{}(Mul24Hi{}(a, b), c); });
using MadHiSaturated = decltype([](s32 a, s32 b, s32 c) -> s32 { return AddSaturated{}(MulHi{}(a, b), c); });
using Mad24HiSaturated = decltype([](s32 a, s32 b, s32 c) -> s32 {
    return AddSaturated{}(Mul24Hi{}(a, b), c);
});
using Sad = decltype([]<class T>(T a, T b, T c) -> T { return Add{}(c, a < b ? Sub{}(b, a) : Sub{}(a, b)); });
// Division by zero gives all ones, as in hardware; the remainder is then the dividend.
using Div = decltype([]<class T>(T a, T b) -> T {
    if (b == 0) return static_cast<T>(~Unsigned<T>(0));
    if (is_signed<T> && b == static_cast<T>(-1)) return Sub{}(T(0), a);
    return static_cast<T>(a / b);
});
using Rem = decltype([]<class T>(T a, T b) -> T {
    if (b == 0) return a;
    if (is_signed<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
});
using Neg = decltype([]<class T>(T a) -> T { return Sub{}(T(0), a); });
using Abs = decltype([]<class T>(T a) -> T { return a < 0 ? Sub{}(T(0), a) : a; });
using Min = decltype([]<class T>(T a, T b) -> T { return a < b ? a : b; });
using Max = decltype([]<class T>(T a, T b) -> T { return a > b ? a : b; });
using And = decltype([]<class T>(T a, T b) -> T { return static_cast<T>(a & b); });
using Or = decltype([]<class T>(T a, T b) -> T { return static_cast<T>(a | b); });
using Xor = decltype([]<class T>(T a, T b) -> T { return static_cast<T>(a ^ b); });
using Not = decltype([]<class T>(T a) -> T { return static_cast<T>(~a); });
using Cnot = decltype([]<class T>(T a) -> T { return a == 0; });
using Copy = decltype([]<class T>(T a) -> T { return a; });

// Shift amounts greater than the width act like the width.
using Shl = decltype([]<class T>(T a, u32 n) -> T {
    return n >= bit_count<T> ? T(0) : static_cast<T>(Unsigned<T>(a) << (n & (bit_count<T> - 1)));
});
using Shr = decltype([]<class T>(T a, u32 n) -> T {
    const u32 top = bit_count<T> - 1;
    if (is_signed<T>) return static_cast<T>(a >> (n > top ? top : n));
    return n > top ? T(0) : static_cast<T>(a >> (n & top));
});

using Popc = decltype([]<class T>(T a) -> u32 { return u32(__builtin_popcountll(a)); });
using Clz = decltype([]<class T>(T a) -> u32 {
    return a == 0 ? bit_count<T> : u32(__builtin_clzll(a)) - (64 - bit_count<T>);
});
using Bfind = decltype([]<class T>(T a) -> u32 {
    const Unsigned<T> v = is_signed<T> && a < 0 ? Unsigned<T>(~a) : Unsigned<T>(a);
    return v == 0 ? ~0u : 63u - u32(__builtin_clzll(v));
});
using BfindShift = decltype([]<class T>(T a) -> u32 {
    const u32 at = Bfind{}(a);
    return at == ~0u ? at : bit_count<T> - 1 - at;
});
using Brev = decltype([]<class T>(T a) -> T {
    T r = 0;
    for (unsigned k = 0; k < bit_count<T>; ++k) r = static_cast<T>((r << 1) | ((a >> k) & 1));
    return r;
});

using Bfe = decltype([]<class T>(T a, u32 b, u32 c) -> T {
    const u32 pos = b & 0xff, len = c & 0xff;
    using U = Unsigned<T>;
    const u32 msb = bit_count<T> - 1;
    if (len == 0) return 0;
    const u32 top = pos + len - 1 < msb ? pos + len - 1 : msb;
    const bool sign = is_signed<T> && ((U(a) >> top) & 1);
    const U field = pos > msb ? U(0) : U(U(a) >> pos);
    const U ones = len > msb ? ~U(0) : U((U(1) << len) - 1);
    const u32 here = pos > msb ? 0 : (msb + 1 - pos < len ? msb + 1 - pos : len);
    const U present = here > msb ? ~U(0) : U((U(1) << here) - 1);
    U r = U(field & present);
    if (sign) r = U(r | (~present & ones) | ~ones);
    return static_cast<T>(r);
});

template <class T>
const Instruction* bfi(Lanes& s, const Instruction* i) {
    const T* a = lanes_at<T>(s, i->operand[1]);
    const T* b = lanes_at<T>(s, i->operand[2]);
    const u32* c = lanes_at<u32>(s, i->operand[3]);
    const u32* e = lanes_at<u32>(s, i->operand[4]);
    alignas(64) T r[32];
    for (unsigned l = 0; l < 32; ++l) {
        const u32 pos = c[l] & 0xff, len = e[l] & 0xff;
        const T ones = len >= bit_count<T> ? ~T(0) : T((T(1) << len) - 1);
        const T mask = pos >= bit_count<T> ? T(0) : T(ones << pos);
        const T field = pos >= bit_count<T> ? T(0) : T(a[l] << pos);
        r[l] = T((b[l] & ~mask) | (field & mask));
    }
    blend(lanes_at<T>(s, i->operand[0]), r, s.write_mask);
    return next(s, i + 1);
}

template <bool Wrap>
struct Bmsk {
    u32 operator()(u32 a, u32 b) const {
        const u32 pos = Wrap ? a & 31 : a, len = Wrap ? b & 31 : b;
        const u32 ones = len >= 32 ? ~0u : (1u << len) - 1;
        return pos >= 32 ? 0 : ones << pos;
    }
};
/// Keeps the lowest n bits, extended with zeros, or with the highest of them if T is signed.
template <class T, bool Wrap>
struct Szext {
    T operator()(T a, u32 b) const {
        const u32 n = Wrap ? b & 31 : b;
        if (n == 0) return 0;
        return n >= 32 ? a : T(u32(a) << (32 - n)) >> (32 - n);
    }
};
using Fns = decltype([](u32 mask, u32 base, u32 offset) -> u32 {
    const s32 n = s32(offset);
    if (n == 0) return base < 32 && (mask >> base & 1) ? base : ~0u;
    const s32 step = n > 0 ? 1 : -1;
    u32 left = n > 0 ? offset : 0u - offset;
    for (s32 at = s32(base); at >= 0 && at < 32; at += step) {
        if ((mask >> at & 1) && --left == 0) return u32(at);
    }
    return ~0u;
});

inline u32 prmt_byte(u64 both, u32 selector) {
    const u32 byte = u32(both >> (8 * (selector & 7))) & 0xff;
    return selector & 8 ? (byte & 0x80 ? 0xff : 0) : byte;
}
using Prmt = decltype([](u32 a, u32 b, u32 c) -> u32 {
    const u64 both = u64(b) << 32 | a;
    u32 r = 0;
    for (u32 k = 0; k < 4; ++k) r |= prmt_byte(both, c >> (4 * k) & 15) << (8 * k);
    return r;
});
// The named modes of prmt: only the low two bits of c select the bytes.
template <Flag Mode>
struct PrmtMode {
    u32 operator()(u32 a, u32 b, u32 c) const {
        const u64 both = u64(b) << 32 | a;
        const u32 n = c & 3;
        u32 r = 0;
        for (u32 k = 0; k < 4; ++k) {
            u32 from = 0;
            if (Mode == Flag::f4e) from = n + k;
            if (Mode == Flag::b4e) from = (n - k) & 7;
            if (Mode == Flag::rc8) from = n;
            if (Mode == Flag::ecl) from = k < n ? n : k;
            if (Mode == Flag::ecr) from = k > n ? n : k;
            if (Mode == Flag::rc16) from = (n & 1) * 2 + (k & 1);
            r |= prmt_byte(both, from) << (8 * k);
        }
        return r;
    }
};
template <bool Left, bool Wrap>
struct Shf {
    u32 operator()(u32 a, u32 b, u32 c) const {
        const u32 n = Wrap ? c & 31 : (c < 32 ? c : 32);
        const u64 both = u64(b) << 32 | a;
        return Left ? u32((both << n) >> 32) : u32(both >> n);
    }
};

const Instruction* lop3(Lanes& s, const Instruction* i) {
    const u32* a = lanes_at<u32>(s, i->operand[1]);
    const u32* b = lanes_at<u32>(s, i->operand[2]);
    const u32* c = lanes_at<u32>(s, i->operand[3]);
    const u32 table = u32(i->immediate);
    alignas(64) u32 r[32];
    BASCULE_LANE_LOOP
    for (unsigned l = 0; l < 32; ++l) {
        u32 v = 0;
        for (u32 k = 0; k < 8; ++k) {
            const u32 hit = (k & 4 ? a[l] : ~a[l]) & (k & 2 ? b[l] : ~b[l]) & (k & 1 ? c[l] : ~c[l]);
            v |= (0u - (table >> k & 1)) & hit;
        }
        r[l] = v;
    }
    blend(lanes_at<u32>(s, i->operand[0]), r, s.write_mask);
    return next(s, i + 1);
}

inline s64 byte_of(u32 word, unsigned k, bool sign) {
    return sign ? s64(static_cast<std::int8_t>(word >> (8 * k))) : s64(word >> (8 * k) & 0xff);
}
template <bool SignA, bool SignB>
struct Dp4a {
    u32 operator()(u32 a, u32 b, u32 c) const {
        s64 sum = 0;
        for (unsigned k = 0; k < 4; ++k) sum += byte_of(a, k, SignA) * byte_of(b, k, SignB);
        return c + u32(sum);
    }
};
template <bool SignA, bool SignB, bool High>
struct Dp2a {
    u32 operator()(u32 a, u32 b, u32 c) const {
        s64 sum = 0;
        for (unsigned k = 0; k < 2; ++k) {
            const s64 half = SignA ? s64(s16(a >> (16 * k))) : s64(a >> (16 * k) & 0xffff);
            sum += half * byte_of(b, k + (High ? 2 : 0), SignB);
        }
        return c + u32(sum);
    }
};

// Applies F to both halves of 32 bits.
template <class F, class T>
struct TwoHalves {
    u32 operator()(u32 a, u32 b) const {
        const u16 low = static_cast<u16>(F{}(static_cast<T>(a), static_cast<T>(b)));
        const u16 high = static_cast<u16>(F{}(static_cast<T>(a >> 16), static_cast<T>(b >> 16)));
        return u32(low) | u32(high) << 16;
    }
};
template <class F>
struct Relu {
    template <class T>
    T operator()(T a, T b) const {
        return Max{}(F{}(a, b), T(0));
    }
};

// cvt.pack: clamps a and b and puts them in the low bits of d, b lowest. For 8 bits, the low half of c is above them.
template <class T>
const Instruction* convert_pack(Lanes& s, const Instruction* i) {
    u32* d = lanes_at<u32>(s, i->operand[0]);
    const s32* a = lanes_at<s32>(s, i->operand[1]);
    const s32* b = lanes_at<s32>(s, i->operand[2]);
    const u32* c = lanes_at<u32>(s, i->operand[3]);
    const auto clamped = [](s32 v) {
        return s32(v < s32(lowest<T>) ? lowest<T> : v > s32(highest<T>) ? highest<T> : v);
    };
    for (const unsigned l : LanesOf{s.mask}) {
        const u32 both = u32(BitsOf<T>(clamped(a[l]))) << bit_count<T> | u32(BitsOf<T>(clamped(b[l])));
        d[l] = sizeof(T) == 1 ? c[l] << 16 | both : both;
    }
    return next(s, i + 1);
}

// Carries are predicates. All operands are read before a result is written.
template <class T, bool Borrow>
const Instruction* add_with_carry(Lanes& s, const Instruction* i) {
    const T* a = lanes_at<T>(s, i->operand[2]);
    const T* b = lanes_at<T>(s, i->operand[3]);
    const u32 in = predicate_at(s, i->operand[4]);
    u32 out = 0;
    alignas(64) T r[32];
    for (unsigned l = 0; l < 32; ++l) {
        const T c = in >> l & 1;
        T first;
        bool over =
            Borrow ? __builtin_sub_overflow(a[l], b[l], &first) : __builtin_add_overflow(a[l], b[l], &first);
        over |= Borrow ? __builtin_sub_overflow(first, c, &r[l]) : __builtin_add_overflow(first, c, &r[l]);
        out |= u32(over) << l;
    }
    blend(lanes_at<T>(s, i->operand[0]), r, s.write_mask);
    write_predicate(s, i->operand[1], out);
    return next(s, i + 1);
}
template <class T, bool High>
const Instruction* mad_with_carry(Lanes& s, const Instruction* i) {
    using U = Unsigned<T>;
    const T* a = lanes_at<T>(s, i->operand[2]);
    const T* b = lanes_at<T>(s, i->operand[3]);
    const U* c = lanes_at<U>(s, i->operand[4]);
    const u32 in = predicate_at(s, i->operand[5]);
    u32 out = 0;
    alignas(64) U r[32];
    for (unsigned l = 0; l < 32; ++l) {
        const U product = U(High ? MulHi{}(a[l], b[l]) : MulLo{}(a[l], b[l]));
        U first;
        bool over = __builtin_add_overflow(product, c[l], &first);
        over |= __builtin_add_overflow(first, U(in >> l & 1), &r[l]);
        out |= u32(over) << l;
    }
    blend(lanes_at<U>(s, i->operand[0]), r, s.write_mask);
    write_predicate(s, i->operand[1], out);
    return next(s, i + 1);
}

template <class T>
const Instruction* select(Lanes& s, const Instruction* i) {
    return for_each_lane<T>(
        s, i, [ at_a = i->operand[1], at_b = i->operand[2],
                at_p = i->operand[3] ](std::byte * registers, T * to) __attribute__((always_inline)) {
            const T* a = lanes_in<T>(registers, at_a);
            const T* b = lanes_in<T>(registers, at_b);
            const u32 p = predicate_in(registers, at_p);
            BASCULE_LANE_LOOP
            for (unsigned l = 0; l < 32; ++l) {
                const T other = static_cast<T>(static_cast<T>((p >> l) & 1u) - 1);
                to[l] = static_cast<T>((b[l] & other) | (a[l] & static_cast<T>(~other)));
            }
        });
}
using SlctInteger = decltype([]<class T>(T a, T b, s32 c) -> T { return c >= 0 ? a : b; });
// With .ftz a negative subnormal c is -0, which is not below 0.
using SlctFlushed = decltype([]<class T>(T a, T b, float c) -> T { return c > -0x1p-126f ? a : b; });
using SlctFloat = decltype([]<class T>(T a, T b, float c) -> T { return c >= 0 ? a : b; });

// --- predicates --------------------------------------------------------------------------------------------

template <Operation O>
const Instruction* logic(Lanes& s, const Instruction* i) {
    write_predicates(s, i, [&](std::byte* registers) {
        const u32 a = predicate_in(registers, i->operand[1]);
        const u32 b = predicate_in(registers, i->operand[2]);
        return O == Operation::and_ ? a & b : O == Operation::or_ ? a | b : a ^ b;
    });
    return next(s, i + 1);
}
template <bool Invert>
const Instruction* move_predicate(Lanes& s, const Instruction* i) {
    write_predicates(s, i, [&](std::byte* registers) {
        const u32 a = predicate_in(registers, i->operand[1]);
        return Invert ? ~a : a;
    });
    return next(s, i + 1);
}

using Ne = decltype([]<class T>(T a, T b) -> bool { return a != b; });

// --- packing -----------------------------------------------------------------------------------------------

template <class T, class P>
const Instruction* pack(Lanes& s, const Instruction* i) {
    alignas(64) T r[32] = {};
    for (unsigned k = 0; k < sizeof(T) / sizeof(P); ++k) {
        const P* part = lanes_at<P>(s, s.lists[i->operand[0] + k]);
        BASCULE_LANE_LOOP
        for (unsigned l = 0; l < 32; ++l) r[l] = static_cast<T>(r[l] | T(part[l]) << (8 * sizeof(P) * k));
    }
    blend(lanes_at<T>(s, i->operand[1]), r, s.write_mask);
    return next(s, i + 1);
}
template <class T, class P>
const Instruction* unpack(Lanes& s, const Instruction* i) {
    const T* a = lanes_at<T>(s, i->operand[1]);
    for (unsigned k = 0; k < sizeof(T) / sizeof(P); ++k) {
        alignas(64) P r[32];
        BASCULE_LANE_LOOP
        for (unsigned l = 0; l < 32; ++l) r[l] = static_cast<P>(a[l] >> (8 * sizeof(P) * k));
        blend(lanes_at<P>(s, s.lists[i->operand[0] + k]), r, s.write_mask);
    }
    return next(s, i + 1);
}

template <class T>
void add_integers(Registry& r) {
    const Type t = type_of<T>;
    const auto none = Type::none;
    r.add(Operation::add, t, none, {}, binary<Add, T>);
    r.add(Operation::sub, t, none, {}, binary<Sub, T>);
    r.add(Operation::mul, t, none, {Flag::lo}, binary<MulLo, T>);
    r.add(Operation::mul, t, none, {Flag::hi}, binary<MulHi, T>);
    r.add(Operation::mad, t, none, {Flag::lo}, ternary<MadLo, T>);
    r.add(Operation::mad, t, none, {Flag::hi}, ternary<MadHi, T>);
    r.add(Operation::sad, t, none, {}, ternary<Sad, T>);
    r.add(Operation::div, t, none, {}, binary<Div, T>);
    r.add(Operation::rem, t, none, {}, binary<Rem, T>);
    r.add(Operation::min, t, none, {}, binary<Min, T>);
    r.add(Operation::max, t, none, {}, binary<Max, T>);
    r.add(Operation::shr, t, none, {}, binary<Shr, T, T, u32>);
    add_comparison<Eq, T>(r, Flag::eq);
    add_comparison<Ne, T>(r, Flag::ne);
    add_comparison<Lt, T>(r, Flag::lt);
    add_comparison<Le, T>(r, Flag::le);
    add_comparison<Gt, T>(r, Flag::gt);
    add_comparison<Ge, T>(r, Flag::ge);
    if constexpr (sizeof(T) < 8) {
        r.add(Operation::mul, t, none, {Flag::wide}, binary<MulWide, Wide<T>, T, T>);
        r.add(Operation::mad, t, none, {Flag::wide}, ternary<MadWide, Wide<T>, T, T, Wide<T>>);
    }
    if constexpr (sizeof(T) == 4) {
        r.add(Operation::mul24, t, none, {Flag::lo}, binary<Mul24Lo, T>);
        r.add(Operation::mul24, t, none, {Flag::hi}, binary<Mul24Hi, T>);
        r.add(Operation::mad24, t, none, {Flag::lo}, ternary<Mad24Lo, T>);
        r.add(Operation::mad24, t, none, {Flag::hi}, ternary<Mad24Hi, T>);
    }
    if constexpr (sizeof(T) >= 4) {
        r.add(Operation::bfind, t, none, {}, unary<Bfind, u32, T>);
        r.add(Operation::bfind, t, none, {Flag::shiftamt}, unary<BfindShift, u32, T>);
        r.add(Operation::bfe, t, none, {}, ternary<Bfe, T, T, u32, u32>);
        r.add(Operation::mad_carry, t, none, {Flag::hi}, mad_with_carry<T, true>);
    }
    if constexpr (is_signed<T>) {
        r.add(Operation::neg, t, none, {}, unary<Neg, T>);
        r.add(Operation::abs, t, none, {}, unary<Abs, T>);
    }
}

// Registers operations that do not depend on the sign of the type.
template <class T>
void add_bits(Registry& r) {
    const Type t = type_of<T>;
    const auto none = Type::none;
    r.add(Operation::and_, t, none, {}, binary<And, T>);
    r.add(Operation::or_, t, none, {}, binary<Or, T>);
    r.add(Operation::xor_, t, none, {}, binary<Xor, T>);
    r.add(Operation::not_, t, none, {}, unary<Not, T>);
    r.add(Operation::cnot, t, none, {}, unary<Cnot, T>);
    r.add(Operation::mov, t, none, {}, unary<Copy, T>);
    r.add(Operation::selp, t, none, {}, Lockstep{select<T>});
    r.add(Operation::slct, t, Type::s32, {}, ternary<SlctInteger, T, T, T, s32>);
    r.add(Operation::slct, t, Type::f32, {}, ternary<SlctFloat, T, T, T, float>);
    r.add(Operation::slct, t, Type::f32, {Flag::ftz}, ternary<SlctFlushed, T, T, T, float>);
    r.add(Operation::shl, t, none, {}, binary<Shl, T, T, u32>);
    if constexpr (sizeof(T) >= 4) {
        r.add(Operation::popc, t, none, {}, unary<Popc, u32, T>);
        r.add(Operation::clz, t, none, {}, unary<Clz, u32, T>);
        r.add(Operation::brev, t, none, {}, unary<Brev, T>);
        r.add(Operation::bfi, t, none, {}, bfi<T>);
        r.add(Operation::add_carry, t, none, {}, add_with_carry<T, false>);
        r.add(Operation::sub_borrow, t, none, {}, add_with_carry<T, true>);
        r.add(Operation::mad_carry, t, none, {Flag::lo}, mad_with_carry<T, false>);
    }
}

template <bool Left>
void add_funnel(Registry& r, Flag side) {
    r.add(Operation::shf, Type::u32, Type::none, {side, Flag::wrap}, ternary<Shf<Left, true>, u32>);
    r.add(Operation::shf, Type::u32, Type::none, {side, Flag::clamp}, ternary<Shf<Left, false>, u32>);
}

template <bool SignA, bool SignB>
void add_dot(Registry& r) {
    const Type a = SignA ? Type::s32 : Type::u32, b = SignB ? Type::s32 : Type::u32;
    r.add(Operation::dp4a, a, b, {}, ternary<Dp4a<SignA, SignB>, u32>);
    r.add(Operation::dp2a, a, b, {Flag::lo}, ternary<Dp2a<SignA, SignB, false>, u32>);
    r.add(Operation::dp2a, a, b, {Flag::hi}, ternary<Dp2a<SignA, SignB, true>, u32>);
}

}  // namespace

void register_arithmetic(Registry& r) {
    for_types<u16, u32, u64, s16, s32, s64>([&]<class T>() { add_integers<T>(r); });
    for_types<u16, u32, u64>([&]<class T>() { add_bits<T>(r); });
    const auto none = Type::none;
    r.add(Operation::add, Type::s32, none, {Flag::sat}, binary<AddSaturated, s32>);
    r.add(Operation::sub, Type::s32, none, {Flag::sat}, binary<SubSaturated, s32>);
    r.add(Operation::and_, Type::pred, none, {}, Lockstep{logic<Operation::and_>});
    r.add(Operation::or_, Type::pred, none, {}, Lockstep{logic<Operation::or_>});
    r.add(Operation::xor_, Type::pred, none, {}, Lockstep{logic<Operation::xor_>});
    r.add(Operation::not_, Type::pred, none, {}, Lockstep{move_predicate<true>});
    r.add(Operation::mov, Type::pred, none, {}, Lockstep{move_predicate<false>});
    r.add(Operation::bmsk, Type::u32, none, {Flag::wrap}, binary<Bmsk<true>, u32>);
    r.add(Operation::bmsk, Type::u32, none, {Flag::clamp}, binary<Bmsk<false>, u32>);
    r.add(Operation::szext, Type::u32, none, {Flag::wrap}, binary<Szext<u32, true>, u32>);
    r.add(Operation::szext, Type::u32, none, {Flag::clamp}, binary<Szext<u32, false>, u32>);
    r.add(Operation::szext, Type::s32, none, {Flag::wrap}, binary<Szext<s32, true>, s32, s32, u32>);
    r.add(Operation::szext, Type::s32, none, {Flag::clamp}, binary<Szext<s32, false>, s32, s32, u32>);
    r.add(Operation::fns, Type::u32, none, {}, ternary<Fns, u32>);
    r.add(Operation::lop3, Type::u32, none, {}, lop3);
    r.add(Operation::prmt, Type::u32, none, {}, ternary<Prmt, u32>);
    for_flags<Flag::f4e, Flag::b4e, Flag::rc8, Flag::ecl, Flag::ecr, Flag::rc16>(
        [&]<Flag F>() { r.add(Operation::prmt, Type::u32, none, {F}, ternary<PrmtMode<F>, u32>); });
    add_funnel<true>(r, Flag::left);
    add_funnel<false>(r, Flag::right);
    add_dot<false, false>(r);
    add_dot<false, true>(r);
    add_dot<true, false>(r);
    add_dot<true, true>(r);
    for_types<u8, s8, u16, s16>(
        [&]<class T>() { r.add(Operation::convert_pack, type_of<T>, Type::s32, {}, convert_pack<T>); });
    const auto unsigned_halves = Type::u16x2, signed_halves = Type::s16x2;
    r.add(Operation::add, unsigned_halves, none, {}, binary<TwoHalves<Add, u16>, u32>);
    r.add(Operation::min, unsigned_halves, none, {}, binary<TwoHalves<Min, u16>, u32>);
    r.add(Operation::min, signed_halves, none, {}, binary<TwoHalves<Min, s16>, u32>);
    r.add(Operation::min, signed_halves, none, {Flag::relu}, binary<TwoHalves<Relu<Min>, s16>, u32>);
    r.add(Operation::min, Type::s32, none, {Flag::relu}, binary<Relu<Min>, s32>);
    r.add(Operation::max, unsigned_halves, none, {}, binary<TwoHalves<Max, u16>, u32>);
    r.add(Operation::max, signed_halves, none, {}, binary<TwoHalves<Max, s16>, u32>);
    r.add(Operation::max, signed_halves, none, {Flag::relu}, binary<TwoHalves<Relu<Max>, s16>, u32>);
    r.add(Operation::max, Type::s32, none, {Flag::relu}, binary<Relu<Max>, s32>);
    r.add(Operation::mad, Type::s32, none, {Flag::hi, Flag::sat}, ternary<MadHiSaturated, s32>);
    r.add(Operation::mad24, Type::s32, none, {Flag::hi, Flag::sat}, ternary<Mad24HiSaturated, s32>);
    r.add(Operation::pack, Type::u32, Type::b16, {}, pack<u32, u16>);
    r.add(Operation::pack, Type::u64, Type::b16, {}, pack<u64, u16>);
    r.add(Operation::pack, Type::u64, Type::b32, {}, pack<u64, u32>);
    r.add(Operation::unpack, Type::u32, Type::b16, {}, unpack<u32, u16>);
    r.add(Operation::unpack, Type::u64, Type::b16, {}, unpack<u64, u16>);
    r.add(Operation::unpack, Type::u64, Type::b32, {}, unpack<u64, u32>);
}

}  // namespace emulated::machine::BASCULE_ISA
