// Loops over 32 lanes. Only handler files include this and define BASCULE_ISA. Everything is in that namespace and
// internal, so each instruction set has its own copy.
#pragma once

#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "machine/control.hpp"
#include "machine/registers.hpp"
#include "machine/registry.hpp"

#if defined(__clang__)
#define BASCULE_LANE_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define BASCULE_LANE_LOOP _Pragma("GCC ivdep")
#endif

namespace emulated::machine::BASCULE_ISA {
namespace {

constexpr std::uint32_t full_mask = 0xffff'ffffu;

/// The unsigned integer of T's size.
template <class T>
using BitsOf =
    std::conditional_t<sizeof(T) == 1, std::uint8_t,
                       std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                          std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

template <class T>
constexpr bool is_signed = static_cast<T>(-1) < static_cast<T>(0);
template <class T>
constexpr T lowest = is_signed<T> ? static_cast<T>(BitsOf<T>(1) << (8 * sizeof(T) - 1)) : T(0);
template <class T>
constexpr T highest = static_cast<T>(~lowest<T>);

template <class To, class From>
inline To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From));
    return __builtin_bit_cast(To, from);
}

/// Sets to[lane] = from[lane] for the lanes in the mask.
template <class T>
inline void blend(T* to, const T* from, std::uint32_t mask) {
    using U = BitsOf<T>;
    U* d = reinterpret_cast<U*>(to);
    const U* r = reinterpret_cast<const U*>(from);
    BASCULE_LANE_LOOP
    for (unsigned l = 0; l < 32; ++l) {
        const U keep = static_cast<U>(static_cast<U>((mask >> l) & 1u) - 1);
        d[l] = static_cast<U>((d[l] & keep) | (r[l] & static_cast<U>(~keep)));
    }
}

inline void write_predicate(Lanes& s, std::uint32_t offset, std::uint32_t value) {
    std::uint32_t& d = predicate_at(s, offset);
    d = (d & ~s.write_mask) | (value & s.write_mask);
}

/// Packs 32 words that are all ones or zero into one bit per lane.
inline std::uint32_t pack_mask(const std::uint32_t* words) {
    std::uint32_t mask = 0;
#if defined(__AVX512DQ__)
    for (std::size_t k = 0; k < 2; ++k) {
        const __m512i v = _mm512_load_si512(words + 16 * k);
        mask |= static_cast<std::uint32_t>(_mm512_movepi32_mask(v)) << (16 * k);
    }
#elif defined(__AVX2__)
    for (std::size_t k = 0; k < 4; ++k) {
        const __m256 v = _mm256_load_ps(reinterpret_cast<const float*>(words + 8 * k));
        mask |= static_cast<std::uint32_t>(_mm256_movemask_ps(v)) << (8 * k);
    }
#elif defined(__SSE2__)
    for (std::size_t k = 0; k < 8; ++k) {
        const __m128 v = _mm_load_ps(reinterpret_cast<const float*>(words + 4 * k));
        mask |= static_cast<std::uint32_t>(_mm_movemask_ps(v)) << (4 * k);
    }
#else
    for (unsigned l = 0; l < 32; ++l) mask |= (words[l] & 1u) << l;
#endif
    return mask;
}

// --- elementwise handlers: F{}(sources...) for every lane ---------------------------------------------
// With a full mask they write in place; otherwise inactive lanes keep their values.

/// Calls visit(registers) for each running warp: one, or those in lockstep. Callers read the instruction's fields
/// beforehand, because the compiler assumes that each write may change them.
template <class Visit>
inline __attribute__((always_inline)) void for_each_warp(Lanes& s, Visit&& visit) {
    std::byte* registers = s.registers;
    const u32 file_bytes = s.file_bytes;
    for (u32 more = s.in_step;; --more) {
        visit(registers);
        if (more == 0) return;
        registers += file_bytes;
    }
}

/// Calls loop(registers, to) for each warp; it fills the 32 lanes of `to`.
template <class D, class Loop>
inline __attribute__((always_inline)) const Instruction* for_each_lane(Lanes& s, const Instruction* i,
                                                                       Loop&& loop) {
    const bool all = s.write_mask == full_mask;
    // One loop serves both destinations, with half the code of two. The destination is chosen by a predictable branch; the
    // empty assembler statement prevents a conditional move, for which later loads would wait. The destination is not on
    // the stack, because a handler without a stack frame starts and ends in fewer instructions.
    std::ptrdiff_t result = i->operand[0];
    if (!all) [[unlikely]] {
        result = s.aside - s.registers;
        asm volatile("" : "+r"(result));
    }
    for_each_warp(
        s, [&](std::byte * registers) __attribute__((always_inline)) {
            loop(registers, static_cast<D*>(__builtin_assume_aligned(registers + result, 64)));
        });
    if (!all) [[unlikely]]
        blend(lanes_at<D>(s, i->operand[0]), reinterpret_cast<const D*>(s.aside), s.write_mask);
    return next(s, i + 1);
}

template <class F, class D, class A>
const Instruction* run_unary(Lanes& s, const Instruction* i) {
    return for_each_lane<D>(
        s, i, [at_a = i->operand[1]](std::byte * registers, D * to) __attribute__((always_inline)) {
            const A* a = lanes_in<A>(registers, at_a);
            BASCULE_LANE_LOOP
            for (unsigned l = 0; l < 32; ++l) to[l] = static_cast<D>(F{}(a[l]));
        });
}
template <class F, class D, class A = D>
constexpr Lockstep unary{run_unary<F, D, A>};

template <class F, class D, class A, class B>
const Instruction* run_binary(Lanes& s, const Instruction* i) {
    return for_each_lane<D>(
        s, i, [ at_a = i->operand[1],
                at_b = i->operand[2] ](std::byte * registers, D * to) __attribute__((always_inline)) {
            const A* a = lanes_in<A>(registers, at_a);
            const B* b = lanes_in<B>(registers, at_b);
            BASCULE_LANE_LOOP
            for (unsigned l = 0; l < 32; ++l) to[l] = static_cast<D>(F{}(a[l], b[l]));
        });
}
template <class F, class D, class A = D, class B = A>
constexpr Lockstep binary{run_binary<F, D, A, B>};

template <class F, class D, class A, class B, class C>
const Instruction* run_ternary(Lanes& s, const Instruction* i) {
    return for_each_lane<D>(
        s, i, [ at_a = i->operand[1], at_b = i->operand[2],
                at_c = i->operand[3] ](std::byte * registers, D * to) __attribute__((always_inline)) {
            const A* a = lanes_in<A>(registers, at_a);
            const B* b = lanes_in<B>(registers, at_b);
            const C* c = lanes_in<C>(registers, at_c);
            BASCULE_LANE_LOOP
            for (unsigned l = 0; l < 32; ++l) to[l] = static_cast<D>(F{}(a[l], b[l], c[l]));
        });
}
template <class F, class D, class A = D, class B = A, class C = B>
constexpr Lockstep ternary{run_ternary<F, D, A, B, C>};

/// Sets the predicate operand[0] of each warp to make(registers).
template <class Make>
inline __attribute__((always_inline)) void write_predicates(Lanes& s, const Instruction* i, Make&& make) {
    for_each_warp(
        s, [&make, at = i->operand[0], mask = s.write_mask ](std::byte * registers)
               __attribute__((always_inline)) {
                   u32& d = predicate_in(registers, at);
                   d = (d & ~mask) | (make(registers) & mask);
               });
}

template <class F, class T>
const Instruction* run_test(Lanes& s, const Instruction* i) {
    write_predicates(
        s, i, [at_a = i->operand[1]](std::byte * registers) __attribute__((always_inline)) {
            const T* a = lanes_in<T>(registers, at_a);
            alignas(64) std::uint32_t r[32];
            BASCULE_LANE_LOOP
            for (unsigned l = 0; l < 32; ++l) r[l] = F{}(a[l]) ? full_mask : 0u;
            return pack_mask(r);
        });
    return next(s, i + 1);
}
template <class F, class T>
constexpr Lockstep test{run_test<F, T>};

template <class F, class T>
inline void write_comparison(Lanes& s, const Instruction* i) {
    write_predicates(
        s, i,
        [ at_a = i->operand[1], at_b = i->operand[2] ](std::byte * registers) __attribute__((always_inline)) {
            const T* a = lanes_in<T>(registers, at_a);
            const T* b = lanes_in<T>(registers, at_b);
            alignas(64) std::uint32_t r[32];
            BASCULE_LANE_LOOP
            for (unsigned l = 0; l < 32; ++l) r[l] = F{}(a[l], b[l]) ? full_mask : 0u;
            return pack_mask(r);
        });
}

template <class F, class T>
const Instruction* run_compare(Lanes& s, const Instruction* i) {
    write_comparison<F, T>(s, i);
    return next(s, i + 1);
}
template <class F, class T>
constexpr Lockstep compare{run_compare<F, T>};

/// A comparison fused with the instruction that uses its predicate.
template <class F, class T, Handler Then>
const Instruction* run_compare_then(Lanes& s, const Instruction* i) {
    write_comparison<F, T>(s, i);
    return Then(s, i);
}
template <class F, class T, Handler Then>
constexpr Lockstep compare_then{run_compare_then<F, T, Then>};

using Eq = decltype([]<class T>(T a, T b) -> bool { return a == b; });
using Lt = decltype([]<class T>(T a, T b) -> bool { return a < b; });
using Le = decltype([]<class T>(T a, T b) -> bool { return a <= b; });
using Gt = decltype([]<class T>(T a, T b) -> bool { return a > b; });
using Ge = decltype([]<class T>(T a, T b) -> bool { return a >= b; });

// The handler that ends a single-instruction run.
inline const Instruction* stand_still(Lanes&, const Instruction* i) { return i; }

/// Sets the processor's rounding mode for one instruction. The calls are opaque, so the compiler moves nothing across them.
template <int Mode, Handler H>
const Instruction* run_rounded(Lanes& s, const Instruction* i) {
    Instruction alone[2] = {*i, {}};
    alone[1].handler = reinterpret_cast<void (*)()>(stand_still);
    fesetround(Mode);
    H(s, alone);
    fesetround(FE_TONEAREST);
    return next(s, i + 1);
}
/// `H` must be a handler of lockstep mode.
template <int Mode, Handler H>
constexpr Lockstep rounded{run_rounded<Mode, H>};

/// The PTX type of a C++ arithmetic type.
template <class T>
constexpr Type type_of = std::is_same_v<T, float>    ? Type::f32
                         : std::is_same_v<T, double> ? Type::f64
                         : sizeof(T) == 1            ? (is_signed<T> ? Type::s8 : Type::u8)
                         : sizeof(T) == 2            ? (is_signed<T> ? Type::s16 : Type::u16)
                         : sizeof(T) == 4            ? (is_signed<T> ? Type::s32 : Type::u32)
                                                     : (is_signed<T> ? Type::s64 : Type::u64);

template <class F, class T>
void add_comparison(Registry& r, Flag flag) {
    r.add(Operation::setp, type_of<T>, Type::none, {flag}, compare<F, T>);
    if constexpr (sizeof(T) >= 4) {
        r.add(Operation::compare_branch, type_of<T>, Type::none, {flag}, compare_then<F, T, branch>);
        r.add(Operation::compare_guard, type_of<T>, Type::none, {flag}, compare_then<F, T, guard>);
    }
}

}  // namespace
}  // namespace emulated::machine::BASCULE_ISA
