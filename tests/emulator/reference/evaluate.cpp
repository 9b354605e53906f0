// Finds the family of an opcode and its operands, and compares the expected result with the actual one.
#include "reference/evaluate.hpp"

#include <stdexcept>

namespace reference {
namespace {

// Families are distinguished by name; add and similar ones have one family for integers and one for floats.
bool takes(const Family& family, const Opcode& opcode) {
    std::string_view name = family.name;
    const std::size_t colon = name.find(':');
    const std::string_view kind = colon == name.npos ? "" : name.substr(colon + 1);
    if (name.substr(0, colon) != opcode.row->name) return false;
    if (kind == "cc") return opcode.flags.has(Flag::cc);
    if (opcode.flags.has(Flag::cc)) return kind.empty();
    const bool is_byte_pair = opcode.type == Type::e4m3x2 || opcode.type == Type::e5m2x2;
    const bool packs = opcode.flags.has(Flag::pack);
    if (kind == "tf32") return opcode.type == Type::tf32;
    if (kind == "bytes") return is_byte_pair && opcode.second == Type::f32;
    if (kind == "bytes2") return is_byte_pair && opcode.second == Type::f16x2;
    if (kind == "frombytes") return opcode.second == Type::e4m3x2 || opcode.second == Type::e5m2x2;
    if (kind == "pack16") return packs && bits_in(opcode.type) == 16;
    if (kind == "pack8") return packs && bits_in(opcode.type) == 8;
    if (kind == "halves") return opcode.type == Type::u16x2 || opcode.type == Type::s16x2;
    if (kind == "float") return emulated::ptx::is_float(opcode.type);
    if (kind == "integer") return !emulated::ptx::is_float(opcode.type);
    if (kind == "wide") return opcode.flags.has(Flag::wide);
    if (kind == "packed") return is_packed(opcode.type);
    return true;
}

// The position of a float among all floats of its format, in order.
Wide place_of(Type type, Bits bits) {
    const Wide magnitude = static_cast<Wide>(bits & ~sign_bit(type));
    return bits & sign_bit(type) ? -magnitude : magnitude;
}

bool agrees_as(Type type, Bits expected, Bits got, int tolerance) {
    if (!emulated::ptx::is_float(type)) return expected == got;
    if (is_nan(type, expected)) return is_nan(type, got);
    if (expected == got) return true;
    if (tolerance == 0 || is_nan(type, got)) return false;
    const Wide apart = place_of(type, expected) - place_of(type, got);
    return (apart < 0 ? -apart : apart) <= tolerance && (expected ^ got) >> (bits_in(type) - 1) == 0;
}

}  // namespace

const Family* family_of(const Opcode& opcode) {
    for (const auto families : {integer_families(), bit_families(), float_families(), comparison_families(),
                                small_format_families(), conversion_families()}) {
        for (const Family& family : families) {
            if (takes(family, opcode)) return &family;
        }
    }
    return nullptr;
}

Signature signature_of(const Opcode& opcode, const Family& family) {
    Signature made;
    const auto type_of = [&](char letter) {
        switch (letter) {
            case 'T':
                return opcode.type;
            case 'W':
                return twice_as_wide(opcode.type);
            case 'S':
                return opcode.second;
            case 'p':
                return Type::pred;
            default:
                return Type::b32;
        }
    };
    for (const char letter : family.results) made.results[made.result_count++] = type_of(letter);
    const auto source = [&](char letter) {
        made.source_letters[made.source_count] = letter;
        made.sources[made.source_count++] = type_of(letter);
    };
    for (const char letter : family.sources) source(letter);
    const bool combines =
        opcode.flags.has(Flag::and_) || opcode.flags.has(Flag::or_) || opcode.flags.has(Flag::xor_);
    if ((family.name == "setp" || family.name == "setp:packed" || family.name == "set") && combines)
        source('p');
    return made;
}

bool agrees(const Answer& expected, Bits got) {
    if (expected.unspecified) return true;
    const Type element = element_of(expected.type);
    if (element == expected.type) return agrees_as(element, expected.bits, got, expected.tolerance);
    return agrees_as(element, expected.bits & 0xffff, got & 0xffff, expected.tolerance) &&
           agrees_as(element, expected.bits >> 16 & 0xffff, got >> 16 & 0xffff, expected.tolerance);
}

unsigned bits_in(Type type) { return type == Type::pred ? 1 : 8 * emulated::ptx::bytes_of(type); }
Bits mask_of(Type type) { return bits_in(type) == 64 ? ~Bits{0} : (Bits{1} << bits_in(type)) - 1; }

Wide integer_of(Type type, Bits bits) {
    const Wide value = static_cast<Wide>(bits & mask_of(type));
    const bool negative = emulated::ptx::is_signed(type) && bits >> (bits_in(type) - 1) & 1;
    return negative ? value - (Wide{1} << bits_in(type)) : value;
}
Bits wrapped(Type type, Wide value) { return static_cast<Bits>(value) & mask_of(type); }
Wide least_of(Type type) { return emulated::ptx::is_signed(type) ? -(Wide{1} << (bits_in(type) - 1)) : 0; }
Wide greatest_of(Type type) {
    return (Wide{1} << (bits_in(type) - (emulated::ptx::is_signed(type) ? 1 : 0))) - 1;
}
Bits clamped(Type type, Wide value) {
    if (value < least_of(type)) value = least_of(type);
    if (value > greatest_of(type)) value = greatest_of(type);
    return wrapped(type, value);
}

mpfr_rnd_t rounding_of(const FlagSet& flags) {
    if (flags.has(Flag::rz)) return MPFR_RNDZ;
    if (flags.has(Flag::rm)) return MPFR_RNDD;
    if (flags.has(Flag::rp)) return MPFR_RNDU;
    return MPFR_RNDN;
}

Bits saturated(Type type, Bits bits) {
    const double value = value_of(type, bits);
    if (!(value > 0)) return 0;
    return value < 1 ? bits : bits_of(type, 1.0);
}

}  // namespace reference
