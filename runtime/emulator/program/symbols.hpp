// The symbols of a module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "program/code.hpp"
#include "ptx/module.hpp"

namespace emulated::program {

/// A call's operands: (results), target, (arguments), prototype. The lists may be missing.
struct CallOperands {
    const ptx::Operand* results = nullptr;
    const ptx::Operand* target = nullptr;
    const ptx::Operand* arguments = nullptr;
};

CallOperands call_operands(const ptx::Instruction& instruction);

struct Symbols {
    std::unordered_map<std::string_view, const ptx::Variable*> variables;
    std::unordered_map<std::string_view, std::size_t> globals;  ///< index into program::Module::globals
    /// The definition, if there is one.
    std::unordered_map<std::string_view, const ptx::Function*> functions;
    std::vector<const ptx::Function*> address_taken;     ///< functions that a pointer may refer to
    std::unordered_set<const ptx::Function*> reentrant;  ///< may be called while they run
    const ptx::Function* first_function = nullptr;       ///< the first function of the module
    bool debug = false;                                  ///< compiled without optimisation

    std::uint64_t address_of(const ptx::Function& function) const {
        return code_window + 16 * static_cast<std::uint64_t>(&function - first_function);
    }
};

/// Does not set the indices of globals, which load.cpp assigns.
Symbols symbols_of(const ptx::Module& module);

}  // namespace emulated::program
