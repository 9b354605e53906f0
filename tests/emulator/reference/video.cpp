// Written from the pages of the video instructions in the PTX ISA: partSelectSignExtend, optSaturate, optSecondaryOp,
// optMerge, and the loops over two or four parts. Where a comment says that an H100 differs from PTX, scalar
// instructions follow the H100, and the machine code that ptxas makes for it.
#include "reference/video.hpp"

#include <array>
#include <stdexcept>

namespace reference {
namespace {

bool has_sign(Type type) { return type == Type::s32; }

Wide field(Bits word, unsigned first, unsigned width, bool with_sign) {
    const Wide value = static_cast<Wide>(word >> first & ((Bits{1} << width) - 1));
    return with_sign && value >> (width - 1) & 1 ? value - (Wide{1} << width) : value;
}

// First bit and width of .b0 to .b3, .h0 and .h1; of a whole word without a selector.
std::array<unsigned, 2> place_of(const std::string& selector) {
    if (selector.empty()) return {0, 32};
    const unsigned width = selector[1] == 'b' ? 8 : 16;
    return {width * static_cast<unsigned>(selector[2] - '0'), width};
}

Wide selected(Bits word, Type type, const std::string& selector) {
    const auto [first, width] = place_of(selector);
    return field(word, first, width, has_sign(type));
}

Wide clamped_to(Wide value, unsigned width, bool with_sign) {
    const Wide most = (Wide{1} << (with_sign ? width - 1 : width)) - 1, least = with_sign ? -most - 1 : 0;
    return value < least ? least : value > most ? most : value;
}

// Keeps only the low bits of a value.
Wide wrapped(Wide value, unsigned width, bool with_sign) {
    const Wide all = Wide{1} << width, low = value & (all - 1);
    return with_sign && low >= all / 2 ? low - all : low;
}

// PTX clamps as `clamped_to` does. An H100 differs. It cuts the result of a shift to 34 bits and clamps it to the range
// of a word, even if the destination is a part. For other instructions, a negative value becomes the greatest value of
// a destination that is a part, and an unsigned word is not clamped from above.
Wide saturated_to(Wide value, unsigned width, bool with_sign, bool shifts) {
    if (shifts) return clamped_to(wrapped(value, 34, true), 32, with_sign);
    if (width < 32) return clamped_to(value < 0 ? Wide{1} << 32 : value, width, with_sign);
    return !with_sign && value > 0 ? value : clamped_to(value, width, with_sign);
}

bool compares(const FlagSet& flags, Wide a, Wide b) {
    if (flags.has(Flag::eq)) return a == b;
    if (flags.has(Flag::ne)) return a != b;
    if (flags.has(Flag::lt)) return a < b;
    if (flags.has(Flag::le)) return a <= b;
    return flags.has(Flag::gt) ? a > b : a >= b;
}

Wide operate(const Opcode& opcode, Wide a, Wide b) {
    std::string name(opcode.row->name);
    if (name.back() == '2' || name.back() == '4') name.pop_back();
    if (name == "vadd") return a + b;
    if (name == "vsub") return a - b;
    if (name == "vabsdiff") return a > b ? a - b : b - a;
    if (name == "vmin") return a < b ? a : b;
    if (name == "vmax") return a > b ? a : b;
    if (name == "vavrg") return a + b >= 0 ? (a + b + 1) >> 1 : (a + b) >> 1;
    if (name == "vset") return compares(opcode.flags, a, b) ? 1 : 0;
    if (name == "vshl" || name == "vshr") {
        if (opcode.flags.has(Flag::clamp) && b > 32) b = 32;
        if (opcode.flags.has(Flag::wrap)) b &= 31;
        for (; b > 0; --b) a = name == "vshl" ? a + a : a >> 1;
        return a;
    }
    throw std::logic_error("no such video instruction: " + name);
}

struct Types {
    Type d, a, b;
};
Types types_of(const Opcode& opcode) {
    if (opcode.row->name.starts_with("vset")) return {Type::u32, opcode.type, opcode.second};
    return {opcode.type, opcode.second, opcode.third};
}

Bits multiply_add(const Opcode& opcode, const Selectors& by, Bits a, Bits b, Bits c) {
    const Types types = types_of(opcode);
    const bool negates = by.negate_a != by.negate_b;
    const bool signed_final = has_sign(types.a) || has_sign(types.b) || negates || by.negate_c;
    // An H100 multiplies and adds whole words as signed, even if they are .u32.
    const auto factor = [](Bits word, Type type, const std::string& selector) {
        return selected(word, selector.empty() ? Type::s32 : type, selector);
    };
    Wide product = factor(a, types.a, by.a) * factor(b, types.b, by.b);
    Wide addend = field(c, 0, 32, true);
    int lsb = 0;
    if (opcode.flags.has(Flag::po)) {
        lsb = 1;
    } else if (negates) {
        product = ~product;
        lsb = 1;
    } else if (by.negate_c) {
        addend = ~addend;
        lsb = 1;
    }
    Wide result = product + addend + lsb;
    const bool scales = opcode.flags.has(Flag::shr7) || opcode.flags.has(Flag::shr15);
    if (scales && !signed_final && result < 0) result += Wide{1} << 64;  // zeros are shifted in
    if (scales) result >>= opcode.flags.has(Flag::shr7) ? 7 : 15;
    if (opcode.flags.has(Flag::sat)) result = clamped_to(result, 32, signed_final);
    return static_cast<Bits>(result) & 0xffff'ffff;
}

Bits scalar(const Opcode& opcode, const Selectors& by, Bits a, Bits b, Bits c) {
    const Types types = types_of(opcode);
    Wide value = operate(opcode, selected(a, types.a, by.a), selected(b, types.b, by.b));
    const auto [first, width] = place_of(by.d);
    const bool shifts = opcode.row->name == "vshl" || opcode.row->name == "vshr";
    const bool adds = opcode.row->name == "vadd" || opcode.row->name == "vsub";
    const bool saturates = opcode.flags.has(Flag::sat);
    if (saturates) value = saturated_to(value, width, has_sign(types.d), shifts);
    // PTX compares numbers of the type of d. On an H100 they have 64 bits, and the upper ones of a sum and of a
    // saturated shift are copies of bit 31: from 2^31 on, an unsigned one is greater than any c.
    if (adds || (shifts && saturates)) value = wrapped(value, 32, true);
    value = wrapped(value, 64, has_sign(types.d));
    const Wide third = field(c, 0, 32, has_sign(types.d));
    if (opcode.flags.has(Flag::add)) value += third;
    if (opcode.flags.has(Flag::min)) value = value < third ? value : third;
    if (opcode.flags.has(Flag::max)) value = value > third ? value : third;
    const Bits mask = ((Bits{1} << width) - 1) << first;
    return by.d.empty() ? static_cast<Bits>(value) & mask
                        : (c & ~mask & 0xffff'ffff) | (static_cast<Bits>(value) << first & mask);
}

// The last digit of a selector selects the part for lane 0.
Bits vector(const Opcode& opcode, const Selectors& by, Bits a, Bits b, Bits c, unsigned lanes) {
    const Types types = types_of(opcode);
    const unsigned width = 32 / lanes;
    const Bits both = b << 32 | a;
    const std::string first = by.a.empty() ? (lanes == 2 ? ".h10" : ".b3210") : by.a;
    const std::string second = by.b.empty() ? (lanes == 2 ? ".h32" : ".b7654") : by.b;
    Bits merged = c;
    Wide sum = static_cast<Wide>(c);
    for (unsigned lane = 0; lane < lanes; ++lane) {
        const char digit = static_cast<char>('0' + lane);
        if (!by.d.empty() && by.d.find(digit) == by.d.npos) continue;
        const auto part = [&](const std::string& selector, Type type) {
            const auto from = static_cast<unsigned>(selector[selector.size() - 1 - lane] - '0');
            return field(both, from * width, width, has_sign(type));
        };
        Wide value = operate(opcode, part(first, types.a), part(second, types.b));
        if (opcode.flags.has(Flag::sat)) value = clamped_to(value, width, has_sign(types.d));
        sum += value;
        const Bits mask = ((Bits{1} << width) - 1) << (lane * width);
        merged = (merged & ~mask) | (static_cast<Bits>(value) << (lane * width) & mask);
    }
    return (opcode.flags.has(Flag::add) ? static_cast<Bits>(sum) : merged) & 0xffff'ffff;
}

}  // namespace

Bits video(const Opcode& opcode, const Selectors& by, Bits a, Bits b, Bits c) {
    const char last = opcode.row->name.back();
    if (last == '2' || last == '4') return vector(opcode, by, a, b, c, static_cast<unsigned>(last - '0'));
    if (opcode.row->name == "vmad") return multiply_add(opcode, by, a, b, c);
    return scalar(opcode, by, a, b, c);
}

}  // namespace reference
