// Loops over 32 lanes. Included only by handler files, which define BASCULE_ISA: everything here is in that
// namespace and internal, so each instruction set has its own copy.
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

/// to[lane] = from[lane] where the mask says so.
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

/// One bit per lane from 32 words that are all ones or zero.
inline std::uint32_t pack_mask(const std::uint32_t* words) {
    std::uint32_t mask = 0;
#if defined(__AVX2__)
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
// A full mask writes in place; otherwise inactive lanes keep what they have.

template <class D, class Loop>
inline __attribute__((always_inline)) const Instruction* for_each_lane(Lanes& s, const Instruction* i,
                                                                       Loop&& loop) {
    D* d = lanes_at<D>(s, i->operand[0]);
    // Not on the stack: a handler without a frame of its own begins and ends in fewer instructions.
    D* aside = reinterpret_cast<D*>(s.aside);
    const bool all = s.write_mask == full_mask;
    // One loop for both places: half the code of a loop for each. A branch chooses, which a processor foresees;
    // the empty assembler text keeps it from becoming a conditional move, for which later loads would wait.
    D* to = d;
    if (!all) [[unlikely]] {
        to = aside;
        asm volatile("" : "+r"(to));
    }
    loop(static_cast<D*>(__builtin_assume_aligned(to, 64)));
    if (!all) [[unlikely]]
        blend(d, aside, s.write_mask);
    return next(s, i + 1);
}

template <class F, class D, class A = D>
const Instruction* unary(Lanes& s, const Instruction* i) {
    const A* a = lanes_at<A>(s, i->operand[1]);
    return for_each_lane<D>(
        s, i, [&](D * to) __attribute__((always_inline)) {
            BASCULE_LANE_LOOP
            for (unsigned l = 0; l < 32; ++l) to[l] = static_cast<D>(F{}(a[l]));
        });
}

template <class F, class D, class A = D, class B = A>
const Instruction* binary(Lanes& s, const Instruction* i) {
    const A* a = lanes_at<A>(s, i->operand[1]);
    const B* b = lanes_at<B>(s, i->operand[2]);
    return for_each_lane<D>(
        s, i, [&](D * to) __attribute__((always_inline)) {
            BASCULE_LANE_LOOP
            for (unsigned l = 0; l < 32; ++l) to[l] = static_cast<D>(F{}(a[l], b[l]));
        });
}

template <class F, class D, class A = D, class B = A, class C = B>
const Instruction* ternary(Lanes& s, const Instruction* i) {
    const A* a = lanes_at<A>(s, i->operand[1]);
    const B* b = lanes_at<B>(s, i->operand[2]);
    const C* c = lanes_at<C>(s, i->operand[3]);
    return for_each_lane<D>(
        s, i, [&](D * to) __attribute__((always_inline)) {
            BASCULE_LANE_LOOP
            for (unsigned l = 0; l < 32; ++l) to[l] = static_cast<D>(F{}(a[l], b[l], c[l]));
        });
}

template <class F, class T>
const Instruction* test(Lanes& s, const Instruction* i) {
    const T* a = lanes_at<T>(s, i->operand[1]);
    alignas(64) std::uint32_t r[32];
    BASCULE_LANE_LOOP
    for (unsigned l = 0; l < 32; ++l) r[l] = F{}(a[l]) ? full_mask : 0u;
    write_predicate(s, i->operand[0], pack_mask(r));
    return next(s, i + 1);
}

template <class F, class T>
inline void write_comparison(Lanes& s, const Instruction* i) {
    const T* a = lanes_at<T>(s, i->operand[1]);
    const T* b = lanes_at<T>(s, i->operand[2]);
    alignas(64) std::uint32_t r[32];
    BASCULE_LANE_LOOP
    for (unsigned l = 0; l < 32; ++l) r[l] = F{}(a[l], b[l]) ? full_mask : 0u;
    write_predicate(s, i->operand[0], pack_mask(r));
}

template <class F, class T>
const Instruction* compare(Lanes& s, const Instruction* i) {
    write_comparison<F, T>(s, i);
    return next(s, i + 1);
}

/// And what looks at the predicate, in the same instruction.
template <class F, class T, Handler Then>
const Instruction* compare_then(Lanes& s, const Instruction* i) {
    write_comparison<F, T>(s, i);
    return Then(s, i);
}

using Eq = decltype([]<class T>(T a, T b) -> bool { return a == b; });
using Lt = decltype([]<class T>(T a, T b) -> bool { return a < b; });
using Le = decltype([]<class T>(T a, T b) -> bool { return a <= b; });
using Gt = decltype([]<class T>(T a, T b) -> bool { return a > b; });
using Ge = decltype([]<class T>(T a, T b) -> bool { return a >= b; });

// The end of an instruction that runs alone.
inline const Instruction* stand_still(Lanes&, const Instruction* i) { return i; }

/// A directed rounding is the processor's while one instruction runs. The calls are opaque, so nothing moves
/// across them.
template <int Mode, Handler H>
const Instruction* rounded(Lanes& s, const Instruction* i) {
    Instruction alone[2] = {*i, {}};
    alone[1].handler = reinterpret_cast<void (*)()>(stand_still);
    fesetround(Mode);
    H(s, alone);
    fesetround(FE_TONEAREST);
    return next(s, i + 1);
}

/// The PTX type of a C++ number.
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
