// Builds a Module from PTX text: parses it, lays out the globals and translates each kernel.
#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "program/layout.hpp"
#include "program/loaded_module.hpp"
#include "program/symbols.hpp"
#include "program/table/versions.hpp"
#include "program/translate.hpp"
#include "ptx/lexer.hpp"
#include "ptx/module.hpp"

namespace emulated::program {
namespace {

Global global_of(const ptx::Variable& variable) {
    Global made;
    made.name = variable.name;
    made.bytes = variable.bytes;
    made.alignment = variable.alignment;
    made.constant = variable.space == ptx::Space::constant;
    made.initial = variable.initial;
    if (made.initial.size() > variable.bytes) {
        throw ptx::SyntaxError(variable.line,
                               "the initialiser of '" + made.name + "' is longer than the array");
    }
    return made;
}

Kernel kernel_of(const ptx::Module& module, const ptx::Function& entry, const Symbols& symbols) {
    Kernel made;
    made.name = entry.name;
    made.max_threads = entry.max_threads == 0 ? 1024 : std::min(entry.max_threads, 1024u);
    made.required_block = entry.required_block;
    made.max_registers = entry.max_registers;
    made.min_blocks = entry.min_blocks;
    made.bound_threads = entry.max_threads;
    made.cluster = entry.cluster;
    made.max_cluster_rank = entry.max_cluster_rank;
    made.explicit_cluster = entry.explicit_cluster;
    made.parameter_bytes = layout_parameters(entry, made.parameters);
    auto result = translate(module, entry, made.parameters, symbols);
    if (auto* refusal = std::get_if<std::string>(&result)) {
        made.refusal = std::move(*refusal);
        return made;
    }
    auto& translation = std::get<Translation>(result);
    made.static_shared_bytes = translation.code->shared_bytes - translation.code->reserved_shared_bytes;
    made.local_bytes = translation.code->local_bytes;
    made.registers = translation.registers;
    made.code = std::move(translation.code);
    return made;
}

/// The error for the first instruction or register type that the text's .version or .target does not have; nothing if
/// all exist.
std::optional<LoadError> find_too_new(const ptx::Module& parsed) {
    const Dialect dialect{10 * parsed.major + parsed.minor, parsed.architecture,
                          parsed.architecture_specific};
    for (const ptx::Function& function : parsed.functions) {
        std::string why;
        if (std::ranges::count(function.registers, Type::b128) != 0) why = why_too_new(".reg.b128", dialect);
        if (!why.empty()) return LoadError{function.line, std::move(why)};
        for (const ptx::Instruction& instruction : function.body) {
            why = why_too_new(instruction.opcode, dialect);
            if (!why.empty()) return LoadError{instruction.line, std::move(why)};
        }
    }
    return std::nullopt;
}

}  // namespace

const Kernel* Module::find_kernel(std::string_view name) const noexcept {
    const auto found = std::ranges::find(kernels, name, &Kernel::name);
    return found == kernels.end() ? nullptr : &*found;
}

const Global* Module::find_global(std::string_view name) const noexcept {
    const auto found = std::ranges::find(globals, name, &Global::name);
    return found == globals.end() ? nullptr : &*found;
}

std::variant<std::shared_ptr<const Module>, LoadError> load(std::string_view text, int newest_architecture) {
    try {
        const ptx::Module parsed = ptx::parse(text, newest_architecture);
        ptx::verify(parsed);
        if (parsed.functions.size() > most_functions) {
            return LoadError{parsed.functions[most_functions].line,
                             fmt::format("a module can have {} functions here", most_functions)};
        }
        if (auto error = find_too_new(parsed)) return *std::move(error);
        auto module = std::make_shared<Module>();
        Symbols symbols = symbols_of(parsed);
        for (const ptx::Variable& variable : parsed.variables) {
            const bool memory =
                variable.space == ptx::Space::global || variable.space == ptx::Space::constant;
            if (!memory || variable.is_extern) continue;
            symbols.globals[variable.name] = module->globals.size();
            module->globals.push_back(global_of(variable));
        }
        for (const ptx::Variable& variable : parsed.variables) {
            const auto at = symbols.globals.find(variable.name);
            if (at == symbols.globals.end()) continue;
            for (const ptx::Variable::Reference& reference : variable.references) {
                const auto target = symbols.globals.find(reference.symbol);
                const auto function = symbols.functions.find(reference.symbol);
                if (function != symbols.functions.end() &&
                    reference.offset + reference.bytes <= variable.bytes) {
                    const std::uint64_t address =
                        symbols.address_of(*function->second) + static_cast<std::uint64_t>(reference.addend);
                    const std::uint64_t value = address >> (8 * reference.first_byte);
                    std::memcpy(module->globals[at->second].initial.data() + reference.offset, &value,
                                reference.bytes);
                    continue;
                }
                if (target == symbols.globals.end()) {
                    return LoadError{variable.line,
                                     "the initialiser of '" + std::string(variable.name) + "' names '" +
                                         std::string(reference.symbol) +
                                         "', which is not a global variable or function of this module"};
                }
                module->globals[at->second].relocations.push_back({reference.offset, target->second,
                                                                   reference.addend, reference.first_byte,
                                                                   reference.bytes});
            }
        }
        for (const ptx::Function& function : parsed.functions) {
            if (function.is_entry && function.has_body) {
                module->kernels.push_back(kernel_of(parsed, function, symbols));
            }
        }
        return module;
    } catch (const ptx::SyntaxError& error) {
        return LoadError{error.line, error.what()};
    }
}

}  // namespace emulated::program
