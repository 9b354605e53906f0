// Half and bfloat16 as bits, and conversions of a double to them in any rounding direction. For handler files only.
#pragma once

#include "handlers/simd.hpp"

namespace emulated::machine::BASCULE_ISA {
namespace {

// The bits of f16 and bf16 as two distinct types.
struct Half {
    u16 bits;
};
struct Brain {
    u16 bits;
};

inline float to_float(Half h) {
    const u32 magnitude = h.bits & 0x7fffu;
    const u32 sign = static_cast<u32>(h.bits & 0x8000u) << 16;
    // After the shift the exponent is 112 too small, also for subnormals.
    const float scaled = bits_as<float>(magnitude << 13) * bits_as<float>(0x7780'0000u);
    const u32 special = magnitude << 13 | 0x7f80'0000u;
    return bits_as<float>((magnitude >= 0x7c00 ? special : bits_as<u32>(scaled)) | sign);
}
inline float to_float(Brain b) { return bits_as<float>(static_cast<u32>(b.bits) << 16); }

// Rounds to the nearest value, ties to even.
inline Half to_half(float value) {
    const u32 bits = bits_as<u32>(value);
    const u32 magnitude = bits & 0x7fff'ffffu;
    const u32 sign = bits >> 16 & 0x8000u;
    const u32 normal = (magnitude + 0xc800'0fffu + (magnitude >> 13 & 1u)) >> 13;
    const float shifted = bits_as<float>(magnitude < 0x3880'0000u ? magnitude : 0u) + 0.5f;
    const u32 small = bits_as<u32>(shifted) - 0x3f00'0000u;
    u32 r = magnitude < 0x3880'0000u ? small : normal;
    r = magnitude >= 0x4780'0000u ? 0x7c00u : r;
    if (magnitude > 0x7f80'0000u) return {0x7fff};
    return {static_cast<u16>(r | sign)};
}
inline Brain to_brain(float value) {
    const u32 bits = bits_as<u32>(value);
    if ((bits & 0x7fff'ffffu) > 0x7f80'0000u) return {0x7fff};
    return {static_cast<u16>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}

template <class H>
inline H from_float(float value) {
    if constexpr (std::is_same_v<H, Half>)
        return to_half(value);
    else
        return to_brain(value);
}

template <>
constexpr Type type_of<Half> = Type::f16;
template <>
constexpr Type type_of<Brain> = Type::bf16;

// Rounds `value` to a format with `mantissa` stored bits and this exponent bias. The flag is the rounding direction.
template <Flag Rounding>
inline u16 round_to_small(double value, unsigned mantissa, int bias) {
    const u64 bits = bits_as<u64>(value);
    const u16 sign = static_cast<u16>(bits >> 48 & 0x8000);
    const u64 magnitude = bits & ~(1ull << 63);
    const u16 infinity = static_cast<u16>(((2 * bias + 1) << mantissa));
    if (magnitude > 0x7ff0'0000'0000'0000ull) return 0x7fff;
    if (magnitude == 0x7ff0'0000'0000'0000ull) return static_cast<u16>(sign | infinity);
    if (magnitude == 0) return sign;
    const bool away = Rounding == Flag::rp ? sign == 0 : Rounding == Flag::rm ? sign != 0 : false;
    int exponent = static_cast<int>(magnitude >> 52) - 1023;
    u64 significand = (magnitude & ((1ull << 52) - 1)) | (1ull << 52);
    if (magnitude >> 52 == 0) {  // far below the least number of both formats
        significand = 1;
        exponent = -1022;
    }
    // The number of bits below the last bit of the result; a subnormal result has more of them.
    int drop = 52 - static_cast<int>(mantissa);
    int biased = exponent + bias;
    if (biased < 1) {
        drop += 1 - biased;
        biased = 1;
    }
    if (drop > 60) drop = 60;
    const u64 kept = significand >> drop, lost = significand & ((1ull << drop) - 1),
              half = 1ull << (drop - 1);
    const bool up = Rounding == Flag::rn ? lost > half || (lost == half && (kept & 1)) : away && lost != 0;
    const u64 rounded = kept + (up ? 1 : 0);
    // The implicit bit increments the exponent; a subnormal has no implicit bit.
    u64 r = rounded + (static_cast<u64>(biased - 1) << mantissa);
    if (r >= infinity) r = Rounding == Flag::rn || away ? infinity : infinity - 1u;
    return static_cast<u16>(sign | r);
}

// Not inlined, because it runs for one lane and a hundred conversions call it.
template <class H, Flag R>
__attribute__((noinline)) H rounded_to_small(double v) {
    if constexpr (std::is_same_v<H, Half>)
        return {round_to_small<R>(v, 10, 15)};
    else
        return {round_to_small<R>(v, 7, 127)};
}

// --- modifiers, as wrappers of an operation ----------------------------------------------------------------

template <class T>
constexpr BitsOf<T> sign_bit = static_cast<BitsOf<T>>(BitsOf<T>(1) << (8 * sizeof(T) - 1));
template <class T>
constexpr BitsOf<T> exponent_bits = sizeof(T) == 4 ? BitsOf<T>(0x7f80'0000u)
                                                   : static_cast<BitsOf<T>>(0x7ff0'0000'0000'0000ull);

template <class T>
inline T flushed(T v) {
    const auto bits = bits_as<BitsOf<T>>(v);
    return bits_as<T>((bits & exponent_bits<T>) == 0 ? BitsOf<T>(bits & sign_bit<T>) : bits);
}
inline Half flushed(Half h) { return {static_cast<u16>(h.bits & 0x7c00 ? h.bits : h.bits & 0x8000)}; }
inline Brain flushed(Brain b) { return {static_cast<u16>(b.bits & 0x7f80 ? b.bits : b.bits & 0x8000)}; }
template <class T>
inline T saturated(T v) {
    const T low = v > T(0) ? v : T(0);  // NaN becomes 0
    return low < T(1) ? low : T(1);
}

inline Half saturated(Half h) { return to_half(saturated(to_float(h))); }
inline Brain saturated(Brain b) { return to_brain(saturated(to_float(b))); }

template <class F>
struct Ftz {
    auto operator()(auto... a) const { return flushed(F{}(flushed(a)...)); }
};
template <class F>
struct FtzInputs {
    auto operator()(auto... a) const { return F{}(flushed(a)...); }
};
template <class F>
struct Sat {
    auto operator()(auto... a) const { return saturated(F{}(a...)); }
};
template <class F>
struct SatInputs {
    auto operator()(auto... a) const { return F{}(saturated(a)...); }
};

// Applies F to both halves of 32 bits.
template <class F, class H>
struct Twice {
    u32 operator()(auto... a) const {
        const H low = F{}(H{static_cast<u16>(a)}...);
        const H high = F{}(H{static_cast<u16>(a >> 16)}...);
        return low.bits | static_cast<u32>(high.bits) << 16;
    }
};

}  // namespace
}  // namespace emulated::machine::BASCULE_ISA
