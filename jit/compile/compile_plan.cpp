#include <algorithm>
#include <initializer_list>
#include <iterator>

#include <fmt/format.h>

#include <bascule/jit/compile/compile_plan.hpp>
#include <bascule/jit/diagnostics/diagnostics_help.hpp>
#include <bascule/jit/types/kernel_declaration.hpp>
#include <bascule/jit/types/reflection.hpp>
#include <bascule/jit/types/specialization.hpp>

namespace bascule {
namespace {

constexpr const char* is_overloaded = "overloaded";
constexpr int most_revisions = 3;

bool contains(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

/// Why the compiler does not give this kernel: `is_overloaded`, a sentence, or empty if no diagnostic is about it.
std::string refusal(const std::string& kernel, const std::vector<Diagnostic>& diagnostics) {
    const std::string signature = without_blanks(signature_expression(kernel));
    const std::string own = without_blanks(kernel);
    std::string first;
    for (const Diagnostic& diagnostic : diagnostics) {
        if (!concerns_name_expression(diagnostic)) continue;
        const std::string expression = name_expression_of(diagnostic);
        if (expression != own && expression != signature) continue;
        const std::string& message = diagnostic.message;
        if (contains(message, "overloaded function \"")) return is_overloaded;
        if (contains(message, "function template \"")) {
            return fmt::format(
                "is a template, which a macro of the text makes of it: name an instance, "
                "name_expressions=[\"{}<...>\"]",
                kernel);
        }
        if (contains(message, "is undefined") || contains(message, "has no member")) {
            return std::string(not_seen);
        }
        if (first.empty()) first = "has parameters that cannot be read. NVRTC says: " + message;
    }
    return first;
}

/// The first diagnostic about one of these name expressions, which is the compiler's reason; or null.
const Diagnostic* find_about(std::initializer_list<std::string> expressions,
                             const std::vector<Diagnostic>& diagnostics) {
    const auto found = std::ranges::find_if(diagnostics, [&](const Diagnostic& diagnostic) {
        return concerns_name_expression(diagnostic) &&
               std::ranges::any_of(expressions,
                                   [named = name_expression_of(diagnostic)](const auto& expression) {
                                       return named == without_blanks(expression);
                                   });
    });
    return found == diagnostics.end() ? nullptr : &*found;
}

/// The overloads, each with a cast to its type, as the text spells it, as its expression.
std::vector<WantedKernel> overloads_of(const WantedKernel& kernel) {
    std::vector<WantedKernel> overloads;
    for (const KernelDeclaration& declaration : kernel.declarations) {
        std::string expression =
            overload_expression(kernel.name, function_pointer(declaration.parameter_types));
        auto known = std::ranges::find(overloads, expression, &WantedKernel::expression);
        if (known == overloads.end()) {
            overloads.push_back({kernel.name, std::move(expression), {}, false, true});
            known = std::prev(overloads.end());
        }
        known->declarations.push_back(declaration);
    }
    return overloads;
}

}  // namespace

KernelDeclaration declaration_of(const WantedKernel& wanted, std::size_t parameters,
                                 const std::vector<KernelDeclaration>& found, const DeclaredLines& lines) {
    const auto told = lines.find(without_blanks(signature_expression(wanted.expression)));
    std::vector<const KernelDeclaration*> meant;
    for (const KernelDeclaration& declaration : told != lines.end() ? found : wanted.declarations) {
        const bool is_it = told != lines.end()
                               ? std::ranges::find(declaration.lines, told->second) != declaration.lines.end()
                               : !declaration.is_conditional;
        if (is_it && takes(declaration, parameters)) meant.push_back(&declaration);
    }
    if (meant.empty()) return {};
    KernelDeclaration declaration = *meant.front();
    declaration.parameters = parameter_names(meant, parameters);
    return declaration;
}

CompilePlan::CompilePlan(const Program& program)
    : signatures_only_(program.purpose == Program::Purpose::signatures),
      found_(find_kernels(program.source.text)) {
    for (const Instance& instance : program.instances) {
        if (instance.is_variable()) {
            variables_.push_back(instance);
            continue;
        }
        WantedKernel& kernel =
            wanted_.emplace_back(WantedKernel{instance.kernel, instance.expression, {}, true});
        for (const KernelDeclaration& declaration : found_) {
            if (declaration.name == instance.kernel) kernel.declarations.push_back(declaration);
        }
    }
    if (!program.instances.empty() && !program.functions_too) return;
    for (const KernelDeclaration& declaration : found_) {
        if (!declaration.is_template) want(declaration);
    }
}

std::vector<std::string> CompilePlan::name_expressions() const {
    std::vector<std::string> expressions;
    for (const WantedKernel& kernel : wanted_) {
        if (!signatures_only_) expressions.push_back(kernel.expression);
        expressions.push_back(signature_expression(kernel.expression));
    }
    if (signatures_only_) return expressions;
    for (const Instance& variable : variables_) expressions.push_back(variable.expression);
    return expressions;
}

bool CompilePlan::revise(const std::vector<Diagnostic>& diagnostics) {
    const bool refuses_instance = std::ranges::any_of(wanted_, [&](const WantedKernel& kernel) {
        return kernel.is_instance && !refusal(kernel.expression, diagnostics).empty();
    });
    const bool refuses_variable = std::ranges::any_of(variables_, [&](const Instance& variable) {
        return find_about({variable.expression}, diagnostics) != nullptr;
    });
    if (refuses_instance || refuses_variable) return false;
    bool changed = false;
    if (++revisions_ > most_revisions) return ask_for_no_guess();
    std::vector<WantedKernel> kept;
    for (WantedKernel& kernel : wanted_) {
        const std::string reason = refusal(kernel.expression, diagnostics);
        if (reason.empty()) {
            kept.push_back(std::move(kernel));
            continue;
        }
        changed = true;
        if (reason != is_overloaded) {
            leave_out(kernel.name, reason);
        } else if (!kernel.is_overload) {
            std::ranges::move(overloads_of(kernel), std::back_inserter(kept));
        } else {
            leave_out(kernel.name, "has no function with the parameters that the text gives it");
        }
    }
    wanted_ = std::move(kept);
    return changed;
}

std::string CompilePlan::refused_instance(const std::vector<Diagnostic>& diagnostics,
                                          const Source& source) const {
    const auto reason = [&](const Diagnostic& diagnostic) {
        const std::string help = help_for(diagnostic, source);
        return fmt::format("NVRTC says: {}{}{}", diagnostic.message, help.empty() ? "" : "\nhelp: ", help);
    };
    for (const WantedKernel& kernel : wanted_) {
        const Diagnostic* const about =
            find_about({kernel.expression, signature_expression(kernel.expression)}, diagnostics);
        if (about == nullptr) continue;
        if (kernel.expression == kernel.name)
            return fmt::format("there is no kernel '{}'. {}", kernel.name, reason(*about));
        return fmt::format("kernel '{}' has no instance {}. {}", kernel.name, kernel.expression,
                           reason(*about));
    }
    for (const Instance& variable : variables_) {
        const Diagnostic* const about = find_about({variable.expression}, diagnostics);
        if (about == nullptr) continue;
        return fmt::format("there is no variable '{}'. {}", variable.kernel, reason(*about));
    }
    return {};
}

void CompilePlan::want(const KernelDeclaration& declaration) {
    auto known = std::ranges::find_if(wanted_, [&](const WantedKernel& kernel) {
        return !kernel.is_instance && kernel.name == declaration.name;
    });
    if (known == wanted_.end()) {
        wanted_.push_back({declaration.name, declaration.name, {}, false, false});
        known = std::prev(wanted_.end());
    }
    known->declarations.push_back(declaration);
}

bool CompilePlan::ask_for_no_guess() {
    return std::erase_if(wanted_, [](const WantedKernel& kernel) { return !kernel.is_instance; }) > 0;
}

void CompilePlan::leave_out(const std::string& name, const std::string& reason) {
    const bool known = std::ranges::any_of(absent_, [&](const auto& each) { return each.first == name; });
    if (!known) absent_.emplace_back(name, reason);
}

}  // namespace bascule
