#include "checks/undefined_bits.hpp"

#include <algorithm>
#include <bit>

namespace emulated::checks::values {
namespace {

using program::Does;
using program::Flag;
using program::Operation;
using ptx::Type;
using Bits = std::uint64_t;

constexpr Bits all = ~Bits{0};

constexpr Bits lowest(unsigned bits) { return bits >= 64 ? all : (Bits{1} << bits) - 1; }
constexpr unsigned width_of(Type type) { return 8 * ptx::bytes_of(type); }

Bits any_of(const LaneStep& s) {
    Bits any = 0;
    for (const LaneValue& each : s.sources) any |= each.undefined;
    return any;
}

// --- rules -------------------------------------------------------------------------------------------------

Bits whole(const LaneStep&) { return all; }
Bits as_first(const LaneStep& s) { return s.sources[0].undefined; }
Bits as_any(const LaneStep& s) { return any_of(s); }

/// Each half of a packed value depends on the same half of the sources.
Bits whole_halves(const LaneStep& s) {
    const Bits any = any_of(s);
    return ((any & 0xffff) != 0 ? 0xffff : 0) | ((any & 0xffff'0000) != 0 ? 0xffff'0000 : 0);
}

/// For instructions that may ignore some bits of their sources: undefined only if all sources are.
Bits if_all_are(const LaneStep& s) {
    const auto wholly = [](const LaneValue& value) { return (value.undefined & 0xffff) == 0xffff; };
    return std::ranges::all_of(s.sources, wholly) ? all : 0;
}

/// A carry or borrow moves upwards only.
Bits upwards(Bits undefined) { return undefined | (0 - undefined); }

Bits sum(const LaneStep& s) { return upwards(any_of(s)); }

/// A product and an addend, if there is one. A product with zero is zero.
Bits product(const LaneStep& s) {
    const auto is_zero = [&](const LaneValue& value) {
        return value.undefined == 0 && (value.bits & lowest(width_of(s.key.type))) == 0;
    };
    const bool zero = is_zero(s.sources[0]) || is_zero(s.sources[1]);
    const Bits factors = zero ? 0 : s.sources[0].undefined | s.sources[1].undefined;
    return upwards(factors | (s.sources.size() > 2 ? s.sources[2].undefined : 0));
}

Bits with_carry(const LaneStep& s) { return s.result == 0 ? sum(s) : all; }

Bits both(const LaneStep& s) {
    const auto &a = s.sources[0], &b = s.sources[1];
    return (a.undefined & (b.bits | b.undefined)) | (b.undefined & (a.bits | a.undefined));
}
Bits either(const LaneStep& s) {
    const auto &a = s.sources[0], &b = s.sources[1];
    return (a.undefined & (~b.bits | b.undefined)) | (b.undefined & (~a.bits | a.undefined));
}

/// An unknown predicate does not matter if both values are the same.
Bits chosen(const LaneStep& s) {
    const auto &a = s.sources[0], &b = s.sources[1], &predicate = s.sources[2];
    if (predicate.undefined == 0) return predicate.bits != 0 ? a.undefined : b.undefined;
    return (a.undefined | b.undefined | (a.bits ^ b.bits)) != 0 ? all : 0;
}

Bits shifted(const LaneStep& s) {
    if (s.sources[1].undefined != 0) return all;
    const unsigned width = width_of(s.key.type);
    const Bits count = s.sources[1].bits & 0xffff'ffff;
    if (s.key.operation == Operation::shl) return count >= width ? 0 : s.sources[0].undefined << count;
    const Bits value = extended(s.sources[0].undefined, s.key.type);
    if (!ptx::is_signed(s.key.type)) return count >= width ? 0 : value >> count;
    return static_cast<Bits>(static_cast<std::int64_t>(value) >> std::min<Bits>(count, width - 1));
}

Bits funnelled(const LaneStep& s) {
    if (s.sources[2].undefined != 0) return all;
    const Bits value = s.sources[1].undefined << 32 | (s.sources[0].undefined & 0xffff'ffff);
    const Bits given = s.sources[2].bits & 0xffff'ffff;
    const Bits count = s.key.flags.has(Flag::wrap) ? given & 31 : std::min<Bits>(given, 32);
    return s.key.flags.has(Flag::left) ? value << count >> 32 : value >> count;
}

Bits permuted(const LaneStep& s) {
    const LaneValue& selector = s.sources[2];
    if ((selector.undefined & 0xffff) != 0 || !s.key.flags.empty()) return all;
    const Bits value = s.sources[1].undefined << 32 | (s.sources[0].undefined & 0xffff'ffff);
    Bits made = 0;
    for (unsigned k = 0; k < 4; ++k) {
        const Bits which = selector.bits >> (4 * k);
        Bits byte = value >> (8 * (which & 7)) & 0xff;
        if ((which & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;  // its sign in all bits
        made |= byte << (8 * k);
    }
    return made;
}

Bits extracted(const LaneStep& s) {
    if (((s.sources[1].undefined | s.sources[2].undefined) & 0xff) != 0) return all;
    const unsigned width = width_of(s.key.type);
    const auto first = static_cast<unsigned>(s.sources[1].bits & 0xff),
               count = static_cast<unsigned>(s.sources[2].bits & 0xff);
    if (count == 0) return 0;
    const Bits value = s.sources[0].undefined & lowest(width);
    const Bits field = first >= width ? 0 : value >> first & lowest(count);
    const Bits sign = value >> std::min(first + count - 1, width - 1) & 1;
    return ptx::is_signed(s.key.type) && sign != 0
               ? field | ~lowest(std::min(count, first >= width ? 0 : width - first))
               : field;
}

Bits inserted(const LaneStep& s) {
    if (((s.sources[2].undefined | s.sources[3].undefined) & 0xff) != 0) return all;
    const Bits first = s.sources[2].bits & 0xff, count = s.sources[3].bits & 0xff;
    const Bits mask = first >= 64 ? 0 : lowest(static_cast<unsigned>(count)) << first;
    return (s.sources[1].undefined & ~mask) | (first >= 64 ? 0 : s.sources[0].undefined << first & mask);
}

Bits packed_parts(const LaneStep& s) {
    const unsigned part = width_of(s.key.type) / static_cast<unsigned>(s.sources.size());
    Bits made = 0;
    for (std::size_t k = 0; k < s.sources.size(); ++k)
        made |= (s.sources[k].undefined & lowest(part)) << (k * part);
    return made;
}
Bits unpacked_part(const LaneStep& s) {
    return s.sources[0].undefined >> (s.result * width_of(s.key.second));
}

Bits converted(const LaneStep& s) {
    return extended(extended(s.sources[0].undefined, s.key.second), s.key.type);
}

/// The result is defined if it is the same for all values of the undefined bits.
Bits compared(const LaneStep& s) {
    const unsigned width = width_of(s.key.type);
    const Bits mask = lowest(width), flip = ptx::is_signed(s.key.type) ? Bits{1} << (width - 1) : 0;
    LaneValue a = s.sources[0], b = s.sources[1];
    for (LaneValue* each : {&a, &b}) {
        each->bits = (each->bits ^ flip) & mask;
        each->undefined &= mask;
    }
    const auto& flags = s.key.flags;
    if (flags.has(Flag::eq) || flags.has(Flag::ne)) {
        const Bits unknown = a.undefined | b.undefined;
        return unknown != 0 && ((a.bits ^ b.bits) & ~unknown) == 0 ? all : 0;
    }
    if (flags.has(Flag::gt) || flags.has(Flag::le)) std::swap(a, b);  // now a < b, or not
    const auto least = [](const LaneValue& value) { return value.bits & ~value.undefined; };
    const auto most = [](const LaneValue& value) { return value.bits | value.undefined; };
    return most(a) < least(b) || least(a) >= most(b) ? 0 : all;
}

// --- the table ---------------------------------------------------------------------------------------------

/// The keys of an operation that a row is for.
enum class For : std::uint8_t { every, integers, plain_integers };

struct PropagationRow {
    Operation operation;
    Propagation how;
    For which = For::every;
};
using O = Operation;
constexpr PropagationRow propagations[] = {
    {O::mov, {as_first, false}},
    {O::move_sum, {as_first, false}},
    {O::not_, {as_first, false}},
    {O::and_, {both, false}},
    {O::or_, {either, false}},
    {O::xor_, {as_any, false}},
    {O::selp, {chosen, false}},
    {O::shl, {shifted, false}},
    {O::shr, {shifted, false}},
    {O::shf, {funnelled, false}},
    {O::prmt, {permuted, false}},
    {O::bfe, {extracted, false}},
    {O::bfi, {inserted, false}},
    {O::pack, {packed_parts, false}},
    {O::unpack, {unpacked_part, false}},
    {O::cvt, {converted, false}, For::plain_integers},
    {O::add, {sum}, For::plain_integers},
    {O::sub, {sum}, For::plain_integers},
    {O::neg, {sum}, For::integers},
    {O::mul, {product}, For::plain_integers},
    {O::mad, {product}, For::plain_integers},
    {O::add_carry, {with_carry}},
    {O::sub_borrow, {with_carry}},
    {O::setp, {compared}, For::integers},
    {O::compare_branch, {compared}, For::integers},
    {O::compare_guard, {compared}, For::integers},
    {O::compare_branch, {whole}},
    {O::compare_guard, {whole}},
    {O::mul24, {if_all_are}},
    {O::mad24, {if_all_are}},
    {O::dp2a, {if_all_are}},
    {O::szext, {if_all_are}},
    {O::bmsk, {if_all_are}},
    {O::fns, {if_all_are}},
    {O::copysign, {if_all_are}},
    {O::convert_small, {if_all_are}},
    {O::convert_pack, {if_all_are}},
    {O::slct, {if_all_are, false}},
    {O::lop3, {if_all_are, false}},
};

bool is_for(const PropagationRow& row, const program::Key& key) {
    const auto integer = [](Type type) { return ptx::is_integer(type) || ptx::is_bits(type); };
    if (row.operation != key.operation) return false;
    if (row.which == For::every) return true;
    if (!integer(key.type) || (key.second != Type::none && !integer(key.second))) return false;
    const program::FlagSet changing{Flag::hi, Flag::sat};
    return row.which == For::integers || (key.flags & changing).empty();
}

bool is_pair(Type type) {
    return type == Type::f16x2 || type == Type::bf16x2 || type == Type::u16x2 || type == Type::s16x2;
}

}  // namespace

Propagation propagation_of(const program::Key& key) noexcept {
    for (const PropagationRow& row : propagations) {
        if (is_for(row, key)) return row.how;
    }
    if (key.operation >= O::video_add && key.operation <= O::video_vector_set) return {if_all_are};
    if (!does(key.operation, Does::by_lane)) return {};
    return {is_pair(key.type) ? whole_halves : whole};
}

std::uint64_t extended(std::uint64_t undefined, ptx::Type type) noexcept {
    const unsigned unused = 64 - width_of(type);
    undefined <<= unused;
    return ptx::is_signed(type) ? static_cast<Bits>(static_cast<std::int64_t>(undefined) >> unused)
                                : undefined >> unused;
}

}  // namespace emulated::checks::values
