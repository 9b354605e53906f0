// One .entry function, and what it calls, -> Code.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>

#include "program/code.hpp"
#include "program/module.hpp"
#include "ptx/module.hpp"

namespace emulated::program {

/// Where names of the module lead.
struct Symbols {
    std::unordered_map<std::string_view, const ptx::Variable*> variables;
    std::unordered_map<std::string_view, std::size_t> globals;  ///< index into program::Module::globals
    /// The definition, where there is one.
    std::unordered_map<std::string_view, const ptx::Function*> functions;
    std::vector<const ptx::Function*> address_taken;  ///< those that a pointer may name
    const ptx::Function* first_function = nullptr;    ///< of the module

    std::uint64_t address_of(const ptx::Function& function) const {
        return code_window + 16 * static_cast<std::uint64_t>(&function - first_function);
    }
};

struct Translation {
    std::shared_ptr<Code> code;
    std::uint32_t registers = 0;  ///< 32-bit registers a thread, as a compiler would count them
    std::uint32_t parameter_bytes = 0;
    std::vector<Kernel::Parameter> parameters;
};

/// Or a sentence that begins with "line N: ".
std::variant<Translation, std::string> translate(const ptx::Module& module, const ptx::Function& entry,
                                                 const Symbols& symbols);

/// Offsets of parameters one after another, each at its alignment.
std::uint32_t layout_parameters(const ptx::Function& function, std::vector<Kernel::Parameter>& into);

}  // namespace emulated::program
