// Video instructions: bytes, halves and words, signed or unsigned, saturated and combined with a third operand. All share
// the same steps in 128 bits, and a handler adds one step of arithmetic. The steps are those of PTX, except where comments
// say that an H100 differs.
#include <algorithm>

#include "machine/groups.hpp"
#include "machine/registry.hpp"
#include "program/variants.hpp"

namespace emulated::machine {
namespace {

using program::Part;
using program::ScalarVideo;
using program::VectorVideo;

__extension__ typedef __int128 Wide;

Wide extended(u32 bits, unsigned width, bool is_signed) {
    const unsigned unused = 32 - width;
    return is_signed ? Wide{static_cast<s32>(bits << unused) >> unused} : Wide{bits << unused >> unused};
}

Wide clamped(Wide value, unsigned width, bool is_signed) {
    const Wide least = is_signed ? -(Wide{1} << (width - 1)) : 0;
    const Wide most = (Wide{1} << (is_signed ? width - 1 : width)) - 1;
    return std::clamp(value, least, most);
}

struct Place {
    unsigned shift, width;
};
Place place_of(Part part) {
    if (part == Part::word) return {0, 32};
    if (part >= Part::h0) return {part == Part::h0 ? 0u : 16u, 16};
    return {8 * (static_cast<unsigned>(part) - static_cast<unsigned>(Part::b0)), 8};
}

Wide selected(u32 word, Part part, bool is_signed) {
    const Place place = place_of(part);
    return extended(word >> place.shift, place.width, is_signed);
}

// --- one step of arithmetic --------------------------------------------------------------------------------

using Add = decltype([](Wide a, Wide b) -> Wide { return a + b; });
using Sub = decltype([](Wide a, Wide b) -> Wide { return a - b; });
using Difference = decltype([](Wide a, Wide b) -> Wide { return a < b ? b - a : a - b; });
using Min = decltype([](Wide a, Wide b) -> Wide { return std::min(a, b); });
using Max = decltype([](Wide a, Wide b) -> Wide { return std::max(a, b); });
// Rounds away from zero.
using Average = decltype([](Wide a, Wide b) -> Wide { return (a + b + (a + b >= 0 ? 1 : 0)) >> 1; });
using Eq = decltype([](Wide a, Wide b) -> Wide { return a == b; });
using Ne = decltype([](Wide a, Wide b) -> Wide { return a != b; });
using Lt = decltype([](Wide a, Wide b) -> Wide { return a < b; });
using Le = decltype([](Wide a, Wide b) -> Wide { return a <= b; });
using Gt = decltype([](Wide a, Wide b) -> Wide { return a > b; });
using Ge = decltype([](Wide a, Wide b) -> Wide { return a >= b; });

struct Sources {
    Sources(Lanes& s, const Instruction* i)
        : d(lanes_at<u32>(s, i->operand[0])),
          a(lanes_at<u32>(s, i->operand[1])),
          b(lanes_at<u32>(s, i->operand[2])),
          c(lanes_at<u32>(s, i->operand[3])) {}
    u32* d;
    const u32 *a, *b, *c;
};

// --- scalar ------------------------------------------------------------------------------------------------

// An H100 has no such instructions, and ptxas emulates each with others, so deviations from PTX depend on the operation.
// Its results were recorded; for modifiers that were not recorded, its code was read.
enum class Step { sum, choice, shift };

// PTX: .sat clamps to the range of d, a word or a part of one. On an H100
// - a shift is clamped as a word, even for a part, and only its low 34 bits count;
// - for a part, other results are clamped only from above, where negative values count as greater than all others;
// - for an unsigned word, other results are clamped only from below.
template <Step S>
Wide saturated(const ScalarVideo& form, Wide value) {
    if (S == Step::shift) {
        constexpr unsigned unused = 64 - 34;
        const auto bits = static_cast<u64>(value) << unused;
        return clamped(static_cast<s64>(bits) >> unused, 32, form.d_signed);
    }
    if (form.d != Part::word) {
        const Wide most = (Wide{1} << (place_of(form.d).width - (form.d_signed ? 1 : 0))) - 1;
        return value < 0 ? most : std::min(value, most);
    }
    return form.d_signed ? clamped(value, 32, true) : std::max(value, Wide{0});
}

// PTX: .min and .max compare the value with c, both with the type of d. An H100 compares 64 bits of that signedness. The
// sum of vadd and vsub, and the saturated result of vshl and vshr, is sign-extended from 32 bits even if it is unsigned; c
// is extended by its type.
template <Step S>
u32 with_c(const ScalarVideo& form, Wide value, u32 c) {
    if (S == Step::sum || (S == Step::shift && form.saturates))
        value = extended(static_cast<u32>(value), 32, true);
    auto bits = static_cast<u64>(value);
    const auto third = static_cast<u64>(extended(c, 32, form.d_signed));
    const bool less = form.d_signed ? static_cast<s64>(bits) < static_cast<s64>(third) : bits < third;
    if (form.secondary == Flag::add) bits += third;
    if (form.secondary == Flag::min) bits = less ? bits : third;
    if (form.secondary == Flag::max) bits = less ? third : bits;
    if (form.d == Part::word) return static_cast<u32>(bits);
    const Place place = place_of(form.d);
    const u32 mask = ((1u << place.width) - 1) << place.shift;
    return (c & ~mask) | (static_cast<u32>(bits) << place.shift & mask);
}

// Computes `tmp` of the PTX manual, saturates it if the instruction has .sat, and combines it with c.
template <Step S, class Compute>
const Instruction* scalar(Lanes& s, const Instruction* i, const Compute& compute) {
    const auto form = program::unpacked<ScalarVideo>(i);
    const Sources of(s, i);
    for (const unsigned l : LanesOf{s.mask}) {
        Wide value =
            compute(form, selected(of.a[l], form.a, form.a_signed), selected(of.b[l], form.b, form.b_signed));
        if (form.saturates) value = saturated<S>(form, value);
        of.d[l] = with_c<S>(form, value, of.c[l]);
    }
    return i + 1;
}

template <class F>
const Instruction* arithmetic(Lanes& s, const Instruction* i) {
    constexpr Step step = __is_same(F, Add) || __is_same(F, Sub) ? Step::sum : Step::choice;
    return scalar<step>(s, i, [](const ScalarVideo&, Wide a, Wide b) { return F{}(a, b); });
}

template <bool Left>
const Instruction* shift(Lanes& s, const Instruction* i) {
    return scalar<Step::shift>(s, i, [](const ScalarVideo& form, Wide a, Wide b) {
        const auto count = static_cast<unsigned>(form.wraps ? b & 31 : std::min<Wide>(b, 32));
        return Left ? a * (Wide{1} << count) : a >> count;
    });
}

// In PTX, words and c are unsigned in an unsigned product. An H100 treats whole words and c as signed whatever their types;
// only the 64-bit sum is unsigned when it is shifted right.
const Instruction* multiply_add(Lanes& s, const Instruction* i) {
    const auto form = program::unpacked<ScalarVideo>(i);
    const Sources of(s, i);
    const bool is_signed = form.a_signed || form.b_signed || form.negates_product || form.negates_c;
    const auto factor = [](u32 word, Part part, bool part_is_signed) {
        return selected(word, part, part_is_signed || part == Part::word);
    };
    for (const unsigned l : LanesOf{s.mask}) {
        Wide value = factor(of.a[l], form.a, form.a_signed) * factor(of.b[l], form.b, form.b_signed);
        Wide c = extended(of.c[l], 32, true);
        if (form.negates_product) value = -value;
        if (form.negates_c) c = -c;
        value += c + (form.plus_one ? 1 : 0);
        if (form.scale != Flag::count) {
            if (!is_signed) value = static_cast<u64>(value);
            value >>= form.scale == Flag::shr7 ? 7 : 15;
        }
        if (form.saturates) value = clamped(value, 32, is_signed);
        of.d[l] = static_cast<u32>(value);
    }
    return i + 1;
}

// --- two halves, four bytes --------------------------------------------------------------------------------

template <class F>
const Instruction* vector(Lanes& s, const Instruction* i) {
    const auto form = program::unpacked<VectorVideo>(i);
    const Sources of(s, i);
    const unsigned width = 32 / form.lanes;
    const auto part = [&](u64 both, unsigned selectors, unsigned lane, bool is_signed) {
        return extended(static_cast<u32>(both >> (selectors >> (4 * lane) & 15) * width), width, is_signed);
    };
    for (const unsigned l : LanesOf{s.mask}) {
        const u64 both = u64{of.b[l]} << 32 | of.a[l];
        u32 merged = of.c[l];
        Wide sum = of.c[l];
        for (unsigned lane = 0; lane < form.lanes; ++lane) {
            if ((form.mask >> lane & 1) == 0) continue;
            Wide value =
                F{}(part(both, form.a, lane, form.a_signed), part(both, form.b, lane, form.b_signed));
            if (form.saturates) value = clamped(value, width, form.d_signed);
            sum += value;
            const u32 mask = ((1u << width) - 1) << (width * lane);
            merged = (merged & ~mask) | (static_cast<u32>(value) << (width * lane) & mask);
        }
        of.d[l] = form.accumulates ? static_cast<u32>(sum) : merged;
    }
    return i + 1;
}

template <class F>
void add_both(Registry& r, Operation scalar_operation, Operation vector_operation,
              const program::FlagSet& flags = {}) {
    r.add(scalar_operation, arithmetic<F>, flags);
    r.add(vector_operation, vector<F>, flags);
}

}  // namespace

void register_video(Registry& r) {
    using O = Operation;
    add_both<Add>(r, O::video_add, O::video_vector_add);
    add_both<Sub>(r, O::video_sub, O::video_vector_sub);
    add_both<Difference>(r, O::video_difference, O::video_vector_difference);
    add_both<Min>(r, O::video_min, O::video_vector_min);
    add_both<Max>(r, O::video_max, O::video_vector_max);
    r.add(O::video_vector_average, vector<Average>);
    r.add(O::video_shl, shift<true>);
    r.add(O::video_shr, shift<false>);
    r.add(O::video_mad, multiply_add);
    add_both<Eq>(r, O::video_set, O::video_vector_set, {Flag::eq});
    add_both<Ne>(r, O::video_set, O::video_vector_set, {Flag::ne});
    add_both<Lt>(r, O::video_set, O::video_vector_set, {Flag::lt});
    add_both<Le>(r, O::video_set, O::video_vector_set, {Flag::le});
    add_both<Gt>(r, O::video_set, O::video_vector_set, {Flag::gt});
    add_both<Ge>(r, O::video_set, O::video_vector_set, {Flag::ge});
}

}  // namespace emulated::machine
