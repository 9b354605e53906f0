// PTX text -> Module: parse, lay out the globals, translate each kernel.
#include <algorithm>

#include "program/module.hpp"
#include "program/translate.hpp"
#include "ptx/lexer.hpp"
#include "ptx/parser.hpp"

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
    made.initial.resize(variable.bytes);
    return made;
}

Kernel kernel_of(const ptx::Module& module, const ptx::Function& entry, const Symbols& symbols) {
    Kernel made;
    made.name = entry.name;
    made.max_threads = entry.max_threads == 0 ? 1024 : std::min(entry.max_threads, 1024u);
    made.parameter_bytes = layout_parameters(entry, made.parameters);
    auto result = translate(module, entry, symbols);
    if (auto* refusal = std::get_if<std::string>(&result)) {
        made.refusal = std::move(*refusal);
        return made;
    }
    auto& translation = std::get<Translation>(result);
    made.static_shared_bytes = translation.code->shared_bytes;
    made.local_bytes = translation.code->local_bytes;
    made.registers = translation.registers;
    made.code = std::move(translation.code);
    return made;
}

}  // namespace

const Kernel* Module::find_kernel(std::string_view name) const noexcept {
    const auto found =
        std::find_if(kernels.begin(), kernels.end(), [&](const Kernel& k) { return k.name == name; });
    return found == kernels.end() ? nullptr : &*found;
}

const Global* Module::find_global(std::string_view name) const noexcept {
    const auto found =
        std::find_if(globals.begin(), globals.end(), [&](const Global& g) { return g.name == name; });
    return found == globals.end() ? nullptr : &*found;
}

std::variant<std::shared_ptr<const Module>, LoadError> load(std::string_view text) {
    try {
        const ptx::Module parsed = ptx::parse(text);
        auto module = std::make_shared<Module>();
        module->ptx_major = parsed.major;
        module->ptx_minor = parsed.minor;
        module->target = parsed.target;

        Symbols symbols;
        for (const ptx::Variable& variable : parsed.variables) {
            const bool memory =
                variable.space == ptx::Space::global || variable.space == ptx::Space::constant;
            // A declaration and its definition may both be there.
            if (!(variable.is_extern && symbols.variables.contains(variable.name))) {
                symbols.variables[variable.name] = &variable;
            }
            if (!memory || variable.is_extern) continue;
            symbols.globals[variable.name] = module->globals.size();
            module->globals.push_back(global_of(variable));
        }
        for (const ptx::Variable& variable : parsed.variables) {
            const auto at = symbols.globals.find(variable.name);
            if (at == symbols.globals.end()) continue;
            for (const ptx::Variable::Reference& reference : variable.references) {
                const auto target = symbols.globals.find(reference.symbol);
                if (target == symbols.globals.end()) {
                    return LoadError{variable.line, "the initialiser of '" + std::string(variable.name) +
                                                        "' names '" + std::string(reference.symbol) +
                                                        "', which is no global variable of this module"};
                }
                module->globals[at->second].relocations.push_back(
                    {reference.offset, target->second, reference.addend});
            }
        }
        for (const ptx::Function& function : parsed.functions) symbols.functions[function.name] = &function;
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
