// cvt into and from eight-bit formats and tf32, and cvt.pack. The result is searched among a format's 256 values.
#include <cmath>

#include "reference/evaluate.hpp"

namespace reference {
namespace {

// `pair` is a type of E4M3 (no infinities) or E5M2.
double value_of_byte(Type pair, Bits bits) {
    const int mantissa = pair == Type::e4m3x2 ? 3 : 2, bias = pair == Type::e4m3x2 ? 7 : 15;
    const Bits magnitude = bits & 0x7f, fraction = magnitude & ((Bits{1} << mantissa) - 1);
    const int exponent = static_cast<int>(magnitude >> mantissa);
    double value = std::ldexp(static_cast<double>(fraction) + (exponent ? 1 << mantissa : 0),
                              (exponent ? exponent : 1) - bias - mantissa);
    if (pair == Type::e4m3x2 && magnitude == 0x7f) value = std::nan("");
    if (pair == Type::e5m2x2 && magnitude >= 0x7c) value = magnitude == 0x7c ? HUGE_VAL : std::nan("");
    return bits & 0x80 ? -value : value;
}

// .rn.satfinite: the nearest of the finite values; of two equally near ones, the even one.
Bits to_byte(const Call& call, Type pair, double value) {
    if (std::isnan(value)) return 0x7f;
    if (call.has(Flag::relu) && std::signbit(value)) return 0;
    const Bits greatest = pair == Type::e4m3x2 ? 0x7e : 0x7b;
    const double magnitude = std::fabs(value);
    Bits best = greatest;
    for (Bits code = 0; code < greatest; ++code) {
        const double low = value_of_byte(pair, code), middle = (low + value_of_byte(pair, code + 1)) / 2;
        if (magnitude < middle || (magnitude == middle && code % 2 == 0)) {
            best = code;
            break;
        }
    }
    return (std::signbit(value) ? 0x80 : 0) | best;
}

void to_bytes(const Call& call, Answers& out) {
    const auto byte = [&](Bits bits, Type from) { return to_byte(call, call.type(), value_of(from, bits)); };
    if (call.opcode.second == Type::f32)
        out.add(call.type(), byte(call[0], Type::f32) << 8 | byte(call[1], Type::f32));
    else
        out.add(call.type(),
                byte(call[0] >> 16 & 0xffff, Type::f16) << 8 | byte(call[0] & 0xffff, Type::f16));
}

void from_bytes(const Call& call, Answers& out) {
    const auto half = [&](Bits bits) {
        const double value = value_of_byte(call.opcode.second, bits);
        if (call.has(Flag::relu) && !std::isnan(value) && std::signbit(value)) return Bits{0};
        return bits_of(Type::f16, value);
    };
    out.add(call.type(), half(call[0] >> 8 & 0xff) << 16 | half(call[0] & 0xff));
}

// In the format of f32: clears the 13 lowest bits.
void to_tf32(const Call& call, Answers& out) {
    Bits magnitude = call[0] & 0x7fff'ffff;
    const Bits sign = call[0] & 0x8000'0000;
    constexpr Bits infinity = 0x7f80'0000, greatest = 0x7f7f'e000;
    Answer& answer = out.add(Type::f32, 0);
    if (magnitude > infinity) {
        answer.bits = 0x7fff'ffff;
        return;
    }
    if (magnitude < infinity) {
        if (call.has(Flag::rna)) magnitude += 0x1000;
        if (call.has(Flag::rn)) magnitude += 0xfff + (magnitude >> 13 & 1);
        magnitude &= ~Bits{0x1fff};
    }
    if (call.has(Flag::satfinite) && magnitude >= infinity) magnitude = greatest;
    answer.bits = call.has(Flag::relu) && sign ? 0 : sign | magnitude;
}

void pack(const Call& call, Answers& out) {
    const unsigned width = bits_in(call.type());
    const Bits a = clamped(call.type(), integer_of(Type::s32, call[0])),
               b = clamped(call.type(), integer_of(Type::s32, call[1]));
    Bits made = a << width | b;
    if (width == 8) made |= call[2] << 16;
    out.add(Type::b32, made & 0xffff'ffff);
}

constexpr Family families[] = {
    {"cvt:tf32", "u", "S", to_tf32},    {"cvt:bytes", "T", "SS", to_bytes},
    {"cvt:bytes2", "T", "S", to_bytes}, {"cvt:frombytes", "T", "S", from_bytes},
    {"cvt:pack16", "u", "uu", pack},    {"cvt:pack8", "u", "uuu", pack},
};

}  // namespace

std::span<const Family> small_format_families() { return families; }

}  // namespace reference
