// Checks which PTX version and which target an instruction needs.
#pragma once

#include <string>
#include <string_view>

namespace emulated::program {

/// The `.version` and `.target` directives of a PTX text: version 8.4 is 84, sm_90 is 90.
struct Dialect {
    int version = 0;
    int architecture = 0;
    bool architecture_specific = false;  ///< sm_90a
};

/// The reason why an instruction is not allowed in a text of this dialect; empty if it is.
std::string why_too_new(std::string_view opcode, const Dialect& dialect);

}  // namespace emulated::program
