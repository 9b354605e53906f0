// Which version of PTX and which target an instruction needs.
#pragma once

#include <string>
#include <string_view>

namespace emulated::program {

/// What a text says at its top: `.version` 8.4 is 84, `.target` sm_90 is 90.
struct Dialect {
    int version = 0;
    int architecture = 0;
};

/// Why an instruction may not stand in a text of this dialect; empty where it may.
std::string why_too_new(std::string_view opcode, const Dialect& dialect);

}  // namespace emulated::program
