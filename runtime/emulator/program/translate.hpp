// One .entry function, and what it calls, -> Code.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "program/code.hpp"
#include "program/module.hpp"
#include "program/symbols.hpp"
#include "ptx/module.hpp"

namespace emulated::program {

struct Translation {
    std::shared_ptr<Code> code;
    std::uint32_t registers = 0;  ///< 32-bit registers per thread, as a compiler would count them
};

/// Or why not, with the place on further lines (Kernel::refusal). `parameters` are where the kernel's lie.
std::variant<Translation, std::string> translate(const ptx::Module& module, const ptx::Function& entry,
                                                 const std::vector<Kernel::Parameter>& parameters,
                                                 const Symbols& symbols);

}  // namespace emulated::program
