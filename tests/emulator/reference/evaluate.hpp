// The result of an instruction of one thread according to PTX: bits in, bits out. Slow, obvious, and written from the
// PTX ISA, except where a comment says that GPUs differ; shares with the emulated device only the operation table's
// names of types and modifiers.
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

/// One result. `tolerance` is the error, in units in the last place, that PTX allows (1 for approximations, because
/// computing in double and rounding once may end next to a tie).
struct Answer {
    Type type = Type::none;
    Bits bits = 0;
    int tolerance = 0;
    bool unspecified = false;  ///< PTX does not define it: division by zero
};

struct Answers {
    std::array<Answer, 4> at;
    unsigned count = 0;
    Answer& add(Type type, Bits bits) {
        at[count] = {type, bits};
        return at[count++];
    }
};

/// True if the result `got` agrees with PTX. All NaNs are equal.
bool agrees(const Answer& expected, Bits got);

/// The inputs of one evaluation.
struct Call {
    const Opcode& opcode;
    const Bits* source;
    Type type() const { return opcode.type; }
    bool has(Flag flag) const { return opcode.flags.has(flag); }
    Bits operator[](std::size_t i) const { return source[i]; }
};

/// A family of instructions. `results` and `sources` have a letter per operand:
///   T the type   W an integer of twice its width   S the second type   u 32 bits   p predicate   i constant
struct Family {
    std::string_view name;
    std::string_view results, sources;
    void (*evaluate)(const Call&, Answers&);
};

/// The family of an opcode; null if it is not an instruction of a single thread.
const Family* family_of(const Opcode& opcode);
/// The types of an instruction's operands, with the changes by .wide, .cc and the combining operand of setp.
struct Signature {
    std::array<Type, 4> results{}, sources{};
    std::array<char, 4> source_letters{};
    unsigned result_count = 0, source_count = 0;
};
Signature signature_of(const Opcode& opcode, const Family& family);

// Each function returns the families of one file.
std::span<const Family> integer_families();
std::span<const Family> bit_families();
std::span<const Family> float_families();
std::span<const Family> comparison_families();
std::span<const Family> small_format_families();
std::span<const Family> conversion_families();

// Shared by the files for integers and floats.
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
