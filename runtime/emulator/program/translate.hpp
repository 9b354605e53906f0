// Translates one .entry function and the functions that it calls to Code.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "program/code.hpp"
#include "program/loaded_module.hpp"
#include "program/symbols.hpp"
#include "ptx/module.hpp"

namespace emulated::program {

struct Translation {
    std::shared_ptr<Code> code;
    std::uint32_t registers = 0;  ///< 32-bit registers per thread, as a compiler counts them
};

/// Returns the code, or why it is refused, with the place on further lines (Kernel::refusal). `parameters` has the offsets
/// of the kernel's parameters.
std::variant<Translation, std::string> translate(const ptx::Module& module, const ptx::Function& entry,
                                                 const std::vector<Kernel::Parameter>& parameters,
                                                 const Symbols& symbols);

}  // namespace emulated::program
