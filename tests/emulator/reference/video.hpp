// The result of a video instruction according to PTX: opcode, selectors, three words.
#pragma once

#include <string>

#include "reference/evaluate.hpp"

namespace reference {

/// The selectors of the operands, each with its dot or empty: ".b0", ".h31".
struct Selectors {
    std::string d, a, b;
    bool negate_a = false, negate_b = false, negate_c = false;
};

/// `c` is ignored if the instruction does not have it.
Bits video(const Opcode& opcode, const Selectors& selectors, Bits a, Bits b, Bits c);

}  // namespace reference
