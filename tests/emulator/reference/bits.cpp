// Bit counting, fields, permutations, shifts and logic, bit by bit as in the pseudocode of the PTX ISA.
#include <string_view>

#include "reference/evaluate.hpp"

namespace reference {
namespace {

bool bit(Bits word, unsigned at) { return word >> at & 1; }
unsigned width(const Call& call) { return bits_in(call.type()); }

void popc(const Call& call, Answers& out) {
    Bits count = 0;
    for (unsigned k = 0; k < width(call); ++k) count += bit(call[0], k);
    out.add(Type::u32, count);
}
void clz(const Call& call, Answers& out) {
    Bits count = 0;
    while (count < width(call) && !bit(call[0], width(call) - 1 - static_cast<unsigned>(count))) ++count;
    out.add(Type::u32, count);
}
// The most significant bit that is not a copy of the sign.
void bfind(const Call& call, Answers& out) {
    Bits word = call[0];
    if (integer_of(call.type(), word) < 0) word = ~word & mask_of(call.type());
    for (unsigned k = width(call); k-- > 0;) {
        if (!bit(word, k)) continue;
        out.add(Type::u32, call.has(Flag::shiftamt) ? width(call) - 1 - k : k);
        return;
    }
    out.add(Type::u32, 0xffff'ffff);
}
void brev(const Call& call, Answers& out) {
    Bits reversed = 0;
    for (unsigned k = 0; k < width(call); ++k) reversed |= Bits{bit(call[0], k)} << (width(call) - 1 - k);
    out.add(call.type(), reversed);
}
void bfe(const Call& call, Answers& out) {
    const unsigned top = width(call) - 1, start = call[1] & 0xff, length = call[2] & 0xff;
    bool sign = false;
    if (emulated::ptx::is_signed(call.type()) && length != 0) {
        sign = bit(call[0], start + length - 1 < top ? start + length - 1 : top);
    }
    Bits field = 0;
    for (unsigned k = 0; k <= top; ++k) {
        const bool inside = k < length && start + k <= top;
        field |= Bits{inside ? bit(call[0], start + k) : sign} << k;
    }
    out.add(call.type(), field);
}
void bfi(const Call& call, Answers& out) {
    const unsigned start = call[2] & 0xff, length = call[3] & 0xff;
    Bits made = call[1];
    for (unsigned k = 0; k < length && start + k < width(call); ++k) {
        made &= ~(Bits{1} << (start + k));
        made |= Bits{bit(call[0], k)} << (start + k);
    }
    out.add(call.type(), made);
}
// b ones, from bit a on.
void bmsk(const Call& call, Answers& out) {
    const bool wraps = call.has(Flag::wrap);
    const Bits start = wraps ? call[0] & 31 : call[0], length = wraps ? call[1] & 31 : call[1];
    Bits made = 0;
    for (Bits k = 0; k < 32; ++k) made |= Bits{k >= start && k < start + length} << k;
    out.add(Type::b32, made);
}
// The lowest b bits of a, extended.
void szext(const Call& call, Answers& out) {
    const Bits length = call.has(Flag::wrap) ? call[1] & 31 : call[1];
    const bool sign = emulated::ptx::is_signed(call.type()) && length != 0 && length < 32 &&
                      bit(call[0], static_cast<unsigned>(length - 1));
    Bits made = 0;
    for (unsigned k = 0; k < 32; ++k) made |= Bits{k < length ? bit(call[0], k) : sign} << k;
    out.add(call.type(), made);
}
// The n-th set bit from a base on, upwards or downwards.
void fns(const Call& call, Answers& out) {
    const Wide base = static_cast<Wide>(call[1]), offset = integer_of(Type::s32, call[2]);
    Bits found = 0xffff'ffff;
    if (offset == 0) {
        if (base < 32 && bit(call[0], static_cast<unsigned>(base))) found = call[1];
    } else {
        Wide left = (offset < 0 ? -offset : offset) - 1;
        for (Wide at = base; at >= 0 && at < 32; at += offset < 0 ? -1 : 1) {
            if (!bit(call[0], static_cast<unsigned>(at))) continue;
            if (left-- > 0) continue;
            found = static_cast<Bits>(at);
            break;
        }
    }
    out.add(Type::b32, found);
}

// For each value of c's low two bits: which of the eight bytes b:a each result byte is, the upper one first.
struct PermuteMode {
    Flag flag;
    std::string_view bytes[4];
};
constexpr PermuteMode permute_modes[] = {
    {Flag::f4e, {"3210", "4321", "5432", "6543"}}, {Flag::b4e, {"5670", "6701", "7012", "0123"}},
    {Flag::rc8, {"0000", "1111", "2222", "3333"}}, {Flag::ecl, {"3210", "3211", "3222", "3333"}},
    {Flag::ecr, {"0000", "1110", "2210", "3210"}}, {Flag::rc16, {"1010", "3232", "1010", "3232"}},
};
void prmt(const Call& call, Answers& out) {
    const Bits both = call[1] << 32 | call[0];
    const auto byte = [&](unsigned index) { return both >> (8 * index) & 0xff; };
    Bits made = 0;
    for (const PermuteMode& mode : permute_modes) {
        if (!call.has(mode.flag)) continue;
        for (unsigned k = 0; k < 4; ++k) {
            made |= byte(static_cast<unsigned>(mode.bytes[call[2] & 3][3 - k] - '0')) << (8 * k);
        }
        out.add(Type::b32, made);
        return;
    }
    for (unsigned k = 0; k < 4; ++k) {
        const unsigned selector = call[2] >> (4 * k) & 15;
        Bits chosen = byte(selector & 7);
        if (selector & 8) chosen = chosen & 0x80 ? 0xff : 0;  // the sign, replicated
        made |= chosen << (8 * k);
    }
    out.add(Type::b32, made);
}
void lop3(const Call& call, Answers& out) {
    Bits made = 0;
    for (unsigned k = 0; k < 32; ++k) {
        const unsigned row = static_cast<unsigned>(bit(call[0], k)) << 2 |
                             static_cast<unsigned>(bit(call[1], k)) << 1 | bit(call[2], k);
        made |= Bits{bit(call[3], row)} << k;
    }
    out.add(Type::b32, made);
}
void shf(const Call& call, Answers& out) {
    const Bits n = call.has(Flag::wrap) ? call[2] & 31 : call[2] < 32 ? call[2] : 32;
    const Bits low = call[0], high = call[1];
    out.add(Type::b32,
            (call.has(Flag::left) ? high << n | low >> (32 - n) : high << (32 - n) | low >> n) & 0xffff'ffff);
}
void shl(const Call& call, Answers& out) {
    out.add(call.type(), call[1] >= width(call) ? 0 : call[0] << call[1] & mask_of(call.type()));
}
void shr(const Call& call, Answers& out) {
    const Bits n = call[1] < width(call) ? call[1] : width(call);
    out.add(call.type(), wrapped(call.type(), integer_of(call.type(), call[0]) >> n));
}

void logical_and(const Call& call, Answers& out) { out.add(call.type(), call[0] & call[1]); }
void logical_or(const Call& call, Answers& out) { out.add(call.type(), call[0] | call[1]); }
void logical_xor(const Call& call, Answers& out) { out.add(call.type(), call[0] ^ call[1]); }
void logical_not(const Call& call, Answers& out) { out.add(call.type(), ~call[0] & mask_of(call.type())); }
void cnot(const Call& call, Answers& out) { out.add(call.type(), call[0] == 0); }
void mov(const Call& call, Answers& out) { out.add(call.type(), call[0]); }

constexpr Family families[] = {
    {"popc", "u", "T", popc},        {"clz", "u", "T", clz},          {"bfind", "u", "T", bfind},
    {"brev", "T", "T", brev},        {"bfe", "T", "Tuu", bfe},        {"bfi", "T", "TTuu", bfi},
    {"bmsk", "T", "uu", bmsk},       {"fns", "T", "uuu", fns},        {"prmt", "T", "uuu", prmt},
    {"lop3", "T", "uuui", lop3},     {"shf", "T", "uuu", shf},        {"shl", "T", "Tu", shl},
    {"shr", "T", "Tu", shr},         {"and", "T", "TT", logical_and}, {"or", "T", "TT", logical_or},
    {"xor", "T", "TT", logical_xor}, {"not", "T", "T", logical_not},  {"cnot", "T", "T", cnot},
    {"mov", "T", "T", mov},          {"szext", "T", "Tu", szext},
};

}  // namespace

std::span<const Family> bit_families() { return families; }

}  // namespace reference
