// Integer arithmetic according to PTX, in 128 bits.
#include "reference/evaluate.hpp"

namespace reference {
namespace {

Wide number(const Call& call, std::size_t i) { return integer_of(call.type(), call[i]); }
void give(const Call& call, Answers& out, Wide value) { out.add(call.type(), wrapped(call.type(), value)); }

// Bits [N, 2N) of a product.
Wide upper_half(const Call& call, Wide product) { return product >> bits_in(call.type()); }
Wide product_part(const Call& call) {
    // The product of two unsigned 64-bit numbers overflows a signed one of 128 bits: only the bits matter.
    __extension__ typedef unsigned __int128 Unsigned;
    if (!emulated::ptx::is_signed(call.type())) {
        const Unsigned product =
            static_cast<Unsigned>(number(call, 0)) * static_cast<Unsigned>(number(call, 1));
        return static_cast<Wide>(call.has(Flag::hi) ? product >> bits_in(call.type()) : product);
    }
    const Wide product = number(call, 0) * number(call, 1);
    return call.has(Flag::hi) ? upper_half(call, product) : product;
}

void add(const Call& call, Answers& out) {
    const Wide sum = number(call, 0) + number(call, 1);
    out.add(call.type(), call.has(Flag::sat) ? clamped(call.type(), sum) : wrapped(call.type(), sum));
}
void sub(const Call& call, Answers& out) {
    const Wide difference = number(call, 0) - number(call, 1);
    out.add(call.type(),
            call.has(Flag::sat) ? clamped(call.type(), difference) : wrapped(call.type(), difference));
}
void mul(const Call& call, Answers& out) { give(call, out, product_part(call)); }
void mad(const Call& call, Answers& out) {
    if (call.has(Flag::sat)) {
        const Wide sum = integer_of(call.type(), wrapped(call.type(), product_part(call))) + number(call, 2);
        out.add(call.type(), clamped(call.type(), sum));
        return;
    }
    give(call, out, static_cast<Wide>(wrapped(call.type(), product_part(call))) + number(call, 2));
}

void mul_wide(const Call& call, Answers& out) {
    out.add(twice_as_wide(call.type()),
            wrapped(twice_as_wide(call.type()), number(call, 0) * number(call, 1)));
}
void mad_wide(const Call& call, Answers& out) {
    const Type wide = twice_as_wide(call.type());
    out.add(wide, wrapped(wide, number(call, 0) * number(call, 1) + integer_of(wide, call[2])));
}

// The low 24 bits of each operand, as a number of the type's sign; the product has 48 bits, of which .lo and .hi are
// the lower and the upper 32.
Wide product24(const Call& call) {
    const auto low24 = [&](std::size_t i) {
        const Wide value = static_cast<Wide>(call[i] & 0xff'ffff);
        return call.type() == Type::s32 && value >= 0x80'0000 ? value - 0x100'0000 : value;
    };
    const Wide product = low24(0) * low24(1);
    return call.has(Flag::hi) ? product >> 16 : product;
}
void mul24(const Call& call, Answers& out) { give(call, out, product24(call)); }
void mad24(const Call& call, Answers& out) {
    const Wide product = integer_of(call.type(), wrapped(call.type(), product24(call))),
               sum = product + number(call, 2);
    out.add(call.type(), call.has(Flag::sat) ? clamped(call.type(), sum) : wrapped(call.type(), sum));
}

void sad(const Call& call, Answers& out) {
    const Wide a = number(call, 0), b = number(call, 1);
    give(call, out, number(call, 2) + (a < b ? b - a : a - b));
}

void div(const Call& call, Answers& out) {
    const Wide b = number(call, 1);
    if (b == 0)
        out.add(call.type(), 0).unspecified = true;
    else
        give(call, out, number(call, 0) / b);
}
void rem(const Call& call, Answers& out) {
    const Wide b = number(call, 1);
    if (b == 0)
        out.add(call.type(), 0).unspecified = true;
    else
        give(call, out, number(call, 0) % b);
}

void abs(const Call& call, Answers& out) {
    const Wide a = number(call, 0);
    give(call, out, a < 0 ? -a : a);
}
void neg(const Call& call, Answers& out) { give(call, out, -number(call, 0)); }
void give_extreme(const Call& call, Answers& out, Wide value) {
    give(call, out, call.has(Flag::relu) && value < 0 ? 0 : value);
}
void min(const Call& call, Answers& out) {
    give_extreme(call, out, number(call, 0) < number(call, 1) ? number(call, 0) : number(call, 1));
}
void max(const Call& call, Answers& out) {
    give_extreme(call, out, number(call, 0) > number(call, 1) ? number(call, 0) : number(call, 1));
}

// The carry chain: CC.CF in is the last source, CC.CF out the second result. Instructions without .cc do not change the
// flag; those without the suffix c do not read it.
bool reads_carry(const Call& call) {
    const auto name = call.opcode.row->name;
    return name == "addc" || name == "subc" || name == "madc";
}
void give_with_carry(const Call& call, Answers& out, Wide value, std::size_t carry_in) {
    const Bits mask = mask_of(call.type());
    out.add(call.type(), static_cast<Bits>(value) & mask);
    const bool carry = value < 0 || value > static_cast<Wide>(mask);
    out.add(Type::pred, call.has(Flag::cc) ? carry : call[carry_in]);
}
Wide plain(const Call& call, std::size_t i) { return static_cast<Wide>(call[i] & mask_of(call.type())); }
void add_carry(const Call& call, Answers& out) {
    give_with_carry(call, out, plain(call, 0) + plain(call, 1) + (reads_carry(call) ? call[2] : 0), 2);
}
void sub_borrow(const Call& call, Answers& out) {
    give_with_carry(call, out, plain(call, 0) - plain(call, 1) - (reads_carry(call) ? call[2] : 0), 2);
}
void mad_carry(const Call& call, Answers& out) {
    const Wide part = static_cast<Wide>(wrapped(call.type(), product_part(call)));
    give_with_carry(call, out, part + plain(call, 2) + (reads_carry(call) ? call[3] : 0), 3);
}

// Bytes or halves of a word, with the sign of the type.
Wide part_of(Type word, Bits bits, unsigned width, unsigned index) {
    const Type part =
        width == 8 ? (word == Type::s32 ? Type::s8 : Type::u8) : (word == Type::s32 ? Type::s16 : Type::u16);
    return integer_of(part, bits >> (width * index));
}
void dp4a(const Call& call, Answers& out) {
    Wide sum = static_cast<Wide>(call[2]);
    for (unsigned k = 0; k < 4; ++k) {
        sum += part_of(call.type(), call[0], 8, k) * part_of(call.opcode.second, call[1], 8, k);
    }
    out.add(Type::b32, wrapped(Type::b32, sum));
}
void dp2a(const Call& call, Answers& out) {
    Wide sum = static_cast<Wide>(call[2]);
    for (unsigned k = 0; k < 2; ++k) {
        const unsigned byte = k + (call.has(Flag::hi) ? 2 : 0);
        sum += part_of(call.type(), call[0], 16, k) * part_of(call.opcode.second, call[1], 8, byte);
    }
    out.add(Type::b32, wrapped(Type::b32, sum));
}
// add, min and max of each half, and .relu of both halves and words, which replaces negative results by 0.
template <void (*Compute)(const Call&, Answers&)>
void each_half(const Call& call, Answers& out) {
    Opcode half = call.opcode;
    half.type = element_of(call.type());
    Bits made = 0;
    for (const unsigned at : {0u, 16u}) {
        const Bits sources[] = {call[0] >> at & 0xffff, call[1] >> at & 0xffff};
        Answers answers;
        Compute({half, sources}, answers);
        made |= answers.at[0].bits << at;
    }
    out.add(call.type(), made);
}

constexpr Family families[] = {
    {"add:cc", "Tp", "TTp", add_carry},
    {"sub:cc", "Tp", "TTp", sub_borrow},
    {"mad:cc", "Tp", "TTTp", mad_carry},
    {"addc", "Tp", "TTp", add_carry},
    {"subc", "Tp", "TTp", sub_borrow},
    {"madc", "Tp", "TTTp", mad_carry},
    {"add:halves", "T", "TT", each_half<add>},
    {"min:halves", "T", "TT", each_half<min>},
    {"max:halves", "T", "TT", each_half<max>},
    {"mul:wide", "W", "TT", mul_wide},
    {"mad:wide", "W", "TTW", mad_wide},
    {"add:integer", "T", "TT", add},
    {"sub:integer", "T", "TT", sub},
    {"mul:integer", "T", "TT", mul},
    {"mad:integer", "T", "TTT", mad},
    {"mul24", "T", "TT", mul24},
    {"mad24", "T", "TTT", mad24},
    {"sad", "T", "TTT", sad},
    {"div:integer", "T", "TT", div},
    {"rem", "T", "TT", rem},
    {"abs:integer", "T", "T", abs},
    {"neg:integer", "T", "T", neg},
    {"min:integer", "T", "TT", min},
    {"max:integer", "T", "TT", max},
    {"dp4a", "u", "uuu", dp4a},
    {"dp2a", "u", "uuu", dp2a},
};

}  // namespace

std::span<const Family> integer_families() { return families; }

}  // namespace reference
