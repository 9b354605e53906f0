#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <iterator>

#include <fmt/format.h>

#include <bascule/jit/compile/compile_plan.hpp>
#include <bascule/jit/diagnostics/diagnostics.hpp>
#include <bascule/jit/diagnostics/diagnostics_help.hpp>
#include <bascule/jit/signatures/reflection.hpp>
#include <bascule/jit/templates/specialization.hpp>

namespace bascule {
namespace {

constexpr const char* is_overloaded = "overloaded";
constexpr int most_revisions = 3;

bool contains(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

/// "ns::k" for the expression `static_cast<void (*)(T*)>(&ns::k)`, by which an overload is asked for.
std::string name_in(const std::string& expression) {
    if (!expression.starts_with("static_cast<")) return expression;
    const std::size_t name = expression.rfind('&') + 1;
    return expression.substr(name, expression.rfind(')') - name);
}

/// Whether the compiler says that a name does not exist: the kernel's, and not that of a parameter's type.
bool is_unknown(const std::string& expression, const std::string& message) {
    if (!contains(message, "is undefined") && !contains(message, "has no member")) return false;
    const std::size_t open = message.find('"') + 1;
    const std::string unknown = message.substr(open, message.find('"', open) - open);
    const std::string name = name_in(expression);
    return name == expression || ("::" + name + "::").find("::" + unknown + "::") != name.npos;
}

/// Why the compiler refuses this kernel: `is_overloaded`, or a clause for messages ("is a template, ..."). Empty if no
/// diagnostic is about it.
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
                name_in(kernel));
        }
        if (is_unknown(kernel, message)) return std::string(not_seen);
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

/// One kernel for each parameter list that the text declares. Its expression is a cast to its type as the text spells
/// it.
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

constexpr std::string_view mark = "bascule_declared";

/// Returns the message that begins at `at`, including the blank line that ends it.
std::string_view message_at(std::string_view log, std::size_t at) {
    const std::size_t blank = log.find("\n\n", at);
    return log.substr(at, blank == log.npos ? log.npos : blank + 2 - at);
}

/// Returns 12 for "... FILE(12): ...": the last place of the message in `file`. Returns 0 if not found.
int last_line_in(const std::string& message, const std::string& file) {
    const std::size_t at = message.rfind(file + "(");
    return at == message.npos ? 0 : std::atoi(message.c_str() + at + file.size() + 1);
}

EntryName name_of_entry(const std::string& entry) {
    const DemangledKernel kernel = demangle_kernel(entry);
    const bool is_unnamed = (kernel.name + kernel.parameters).find("(anonymous") != std::string::npos;
    if (!kernel.is_typed) return {entry.starts_with("_Z") ? "" : entry, entry, ""};  // extern "C"
    if (is_unnamed) return {"", entry, ""};
    return {kernel.name, entry, overload_expression(kernel.name, "void (*)(" + kernel.parameters + ")")};
}

}  // namespace

std::string question_of_declared_lines(const Program& program) {
    const CompileOptions& options = program.options;
    const bool stops_at_warnings = std::ranges::any_of(
        options.extra, [](const std::string& option) { return option.find("error") != option.npos; });
    const bool is_plain = options.defines.empty() && program.source.text.find('#') == std::string::npos;
    if (stops_at_warnings || is_plain) return {};
    return "#undef __global__\n"
           "#define __global__ __attribute__((global)) __attribute__((deprecated(\"bascule_declared\")))\n";
}

DeclaredLines take_declared_lines(std::string& log, const Program& program,
                                  std::vector<std::string> expressions) {
    if (log.find(mark) == log.npos) return {};
    const std::string canonical = canonical_name(program.source.text);
    std::ranges::sort(expressions);  // the compiler numbers them in this order
    expressions.erase(std::unique(expressions.begin(), expressions.end()), expressions.end());
    DeclaredLines lines;
    std::string kept;
    bool follows_answer = false;
    for (std::size_t at = 0; at < log.size();) {
        const std::string message(message_at(log, at));
        at += message.size();
        const bool is_answer = message.find(mark) != message.npos;
        // After the first warning, NVRTC prints a remark on how to suppress it.
        if (!is_answer && !(follows_answer && message.starts_with("Remark: "))) kept += message;
        follows_answer = is_answer;
        const int number = last_line_in(message, "__nv_name_map");
        if (!is_answer || number < 2 || static_cast<std::size_t>(number) > expressions.size() + 1) continue;
        const int line = last_line_in(message, canonical);
        lines[without_blanks(expressions[static_cast<std::size_t>(number) - 2])] =
            line == 0 ? 0 : line_in_text(program.source.text, line);
    }
    log = std::move(kept);
    return lines;
}

KernelDeclaration declaration_of(const WantedKernel& wanted, std::size_t parameters,
                                 const std::vector<KernelDeclaration>& found, const DeclaredLines& lines) {
    const auto told = lines.find(without_blanks(signature_expression(wanted.expression)));
    const bool has_template_arguments =
        without_blanks(wanted.expression).find(without_blanks(wanted.name) + '<') != std::string::npos;
    std::vector<const KernelDeclaration*> meant;
    for (const KernelDeclaration& declaration : told != lines.end() ? found : wanted.declarations) {
        const bool is_it =
            told != lines.end()
                ? std::ranges::find(declaration.lines, told->second) != declaration.lines.end()
                : !declaration.is_conditional && declaration.is_template == has_template_arguments;
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
    if (++revisions_ > most_revisions)
        return std::erase_if(wanted_, [](const WantedKernel& kernel) { return !kernel.is_instance; }) > 0;
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

void CompilePlan::leave_out(const std::string& name, const std::string& reason) {
    const bool known = std::ranges::any_of(absent_, [&](const auto& each) { return each.first == name; });
    if (!known) absent_.emplace_back(name, reason);
}

std::vector<std::string> entries_of(std::string_view ptx) {
    static constexpr std::string_view directive = ".entry ";
    std::vector<std::string> entries;
    for (std::size_t at = ptx.find(directive); at != ptx.npos; at = ptx.find(directive, at)) {
        at += directive.size();
        entries.emplace_back(ptx.substr(at, ptx.find_first_of("( \t\r\n", at) - at));
    }
    return entries;
}

std::vector<EntryName> undeclared_entries(const Image& image, const std::vector<KernelDeclaration>& in_text) {
    const auto is_template = [&](std::string_view name) {
        return std::ranges::any_of(in_text, [&](const KernelDeclaration& declaration) {
            return declaration.is_template && declaration.name == name;
        });
    };
    std::vector<EntryName> found;
    for (const std::string& lowered_name : entries_of(image.ptx)) {
        const auto known = std::ranges::find(image.kernels, lowered_name, &KernelImage::lowered_name);
        if (known != image.kernels.end()) continue;
        EntryName entry = name_of_entry(lowered_name);
        const std::size_t open = entry.name.find('<');
        const bool is_instance = open != std::string::npos && is_template(entry.name.substr(0, open));
        if (!entry.name.empty() && !is_instance) found.push_back(std::move(entry));
    }
    return found;
}

void name_as_in_text(std::span<KernelImage> undeclared, const Image& image,
                     const std::vector<KernelDeclaration>& in_text) {
    for (const KernelDeclaration& declaration : in_text) {
        const auto is_like = [&](const auto& each) {
            return last_component(each.name) == last_component(declaration.name);
        };
        const auto is_namesake = [&](const KernelDeclaration& each) {
            return is_like(each) && (each.is_template || each.name != declaration.name);
        };
        const auto first = std::ranges::find_if(undeclared, is_like);
        const auto is_absent = [&](const auto& absent) {
            return absent.first == declaration.name && absent.second == not_seen;
        };
        if (first == undeclared.end() || !first->name.ends_with("::" + declaration.name) ||
            std::ranges::none_of(image.absent, is_absent) || std::ranges::any_of(in_text, is_namesake) ||
            std::ranges::any_of(image.kernels, is_like))
            continue;
        const auto is_other = [&](const KernelImage& each) {
            return is_like(each) && each.name != first->name;
        };
        if (std::ranges::any_of(undeclared, is_other)) continue;
        for (KernelImage& kernel : undeclared) {
            if (!is_like(kernel)) continue;
            if (kernel.expression == kernel.name) kernel.expression = declaration.name;
            kernel.name = declaration.name;
        }
    }
}

void name_sole_kernels(Image& image, const Program& program) {
    for (KernelImage& kernel : image.kernels) {
        const auto is_asked = [&](const Instance& each) { return each.expression == kernel.expression; };
        const auto is_other = [&](const KernelImage& other) {
            return other.name == kernel.name && other.lowered_name != kernel.lowered_name;
        };
        if (std::ranges::none_of(program.instances, is_asked) &&
            std::ranges::none_of(image.kernels, is_other) && kernel.expression.starts_with("static_cast<"))
            kernel.expression = kernel.name;
    }
    std::erase_if(image.absent, [&](const auto& absent) {
        return std::ranges::any_of(image.kernels, [&](const KernelImage& kernel) {
            return kernel.name == absent.first || kernel.expression == absent.first;
        });
    });
}

}  // namespace bascule
