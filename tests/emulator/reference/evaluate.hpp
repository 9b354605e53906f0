// What PTX says an instruction of one thread computes: bits in, bits out. Slow, obvious, and written from the
// PTX ISA, but where a comment says that GPUs do otherwise; of the emulated device it knows the operation table's
// names for types and modifiers.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "program/table/operations.hpp"
#include "reference/numbers.hpp"

namespace reference {

using emulated::program::Flag;
using emulated::program::FlagSet;
using emulated::program::Opcode;

/// One result. `tolerance`: how many units in the last place PTX leaves open (approximations: 1, because
/// computing in double and rounding once may end beside a tie).
struct Answer {
    Type type = Type::none;
    Bits bits = 0;
    int tolerance = 0;
    bool unspecified = false;  ///< PTX does not say: division by zero
};

struct Answers {
    std::array<Answer, 4> at;
    unsigned count = 0;
    Answer& add(Type type, Bits bits) {
        at[count] = {type, bits};
        return at[count++];
    }
};

/// Whether a machine that got `got` did what PTX says. NaNs are all the same.
bool agrees(const Answer& expected, Bits got);

/// What one evaluation sees.
struct Call {
    const Opcode& opcode;
    const Bits* source;
    Type type() const { return opcode.type; }
    bool has(Flag flag) const { return opcode.flags.has(flag); }
    Bits operator[](std::size_t i) const { return source[i]; }
};

/// A family of instructions. `results` and `sources` have a letter an operand:
///   T the type   W an integer of twice its width   S the second type   u 32 bits   p predicate   i constant
struct Family {
    std::string_view name;
    std::string_view results, sources;
    void (*evaluate)(const Call&, Answers&);
};

/// Null: no instruction of one thread alone.
const Family* family_of(const Opcode& opcode);
/// The operands, with what .wide, .cc and the combining operand of setp change.
struct Signature {
    std::array<Type, 4> results{}, sources{};
    std::array<char, 4> source_letters{};
    unsigned result_count = 0, source_count = 0;
};
Signature signature_of(const Opcode& opcode, const Family& family);

// The families, by file.
std::span<const Family> integer_families();
std::span<const Family> bit_families();
std::span<const Family> float_families();
std::span<const Family> comparison_families();
std::span<const Family> small_format_families();
std::span<const Family> conversion_families();

// What several files need of integers and floats.
unsigned bits_in(Type type);
Bits mask_of(Type type);
Wide integer_of(Type type, Bits bits);  ///< with the type's sign
Bits wrapped(Type type, Wide value);
Wide least_of(Type type);
Wide greatest_of(Type type);
Bits clamped(Type type, Wide value);
using emulated::ptx::is_integer;
mpfr_rnd_t rounding_of(const FlagSet& flags);
Bits saturated(Type type, Bits bits);  ///< into [0, 1]; NaN and -0 become +0

}  // namespace reference
