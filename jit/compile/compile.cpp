#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/compile/compile.hpp>
#include <bascule/jit/compile/compile_plan.hpp>
#include <bascule/jit/compile/nvrtc_input.hpp>
#include <bascule/jit/compile/precompiled_header.hpp>
#include <bascule/jit/compile/view_probe.hpp>
#include <bascule/jit/diagnostics/diagnostics.hpp>
#include <bascule/jit/diagnostics/diagnostics_help.hpp>
#include <bascule/jit/process/log.hpp>
#include <bascule/jit/signatures/mangled_signature.hpp>
#include <bascule/jit/signatures/reflection.hpp>
#include <bascule/jit/templates/kernel_declaration.hpp>
#include <bascule/jit/templates/specialization.hpp>
#include <bascule/jit/text/lexer.hpp>

namespace bascule {
namespace {

[[noreturn]] void fail(const std::string& message, const Program& program, std::vector<std::string> options,
                       std::string log, std::vector<Diagnostic> diagnostics = {}) {
    throw CompileError(message, {.log = std::move(log),
                                 .options = std::move(options),
                                 .architecture = to_string(program.arch),
                                 .diagnostics = std::move(diagnostics)});
}

/// NVRTC takes C strings, so it would compile only the part before the first NUL.
void refuse_nul(const Program& program) {
    const std::size_t at = program.source.text.find('\0');
    if (at == std::string::npos) return;
    const auto line = std::count(program.source.text.begin(),
                                 program.source.text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    fail(fmt::format("{}:{}: the text contains a NUL character. Remove it.", program.source.name,
                     line + program.source.first_line),
         program, {}, {});
}

/// NVRTC accepts references, but the driver would pass the value where the kernel expects an address.
void refuse_references(const Signature& signature) {
    for (const Parameter& parameter : signature.parameters) {
        if (!parameter.spelling.ends_with('&')) continue;
        throw CompileError(
            fmt::format("kernel '{}': parameter '{}' is a reference. CUDA forbids references as kernel "
                        "parameters: take a pointer for an array, or the value itself.",
                        signature.kernel, parameter.name));
    }
}

/// Whether the declaration contains `name` as a whole word.
bool has_word(std::string_view declaration, std::string_view name) {
    const std::size_t at = declaration.find(name);
    if (at == declaration.npos) return false;
    const std::size_t end = at + name.size();
    return (at == 0 || !continues_word(declaration[at - 1])) &&
           (end == declaration.size() || !continues_word(declaration[end]));
}

/// The compiler sees textures and surfaces as integers, so the text is searched for their types.
void find_images(Signature& signature, const KernelDeclaration& declaration) {
    using Image = ParameterType::Image;
    static constexpr std::pair<std::string_view, Image> names[] = {{"cudaTextureObject_t", Image::texture},
                                                                   {"CUtexObject", Image::texture},
                                                                   {"cudaSurfaceObject_t", Image::surface},
                                                                   {"CUsurfObject", Image::surface}};
    if (declaration.parameter_types.size() != signature.parameters.size()) return;  // it has a pack
    for (std::size_t i = 0; i < signature.parameters.size(); ++i) {
        Parameter& parameter = signature.parameters[i];
        if (parameter.spelling != "unsigned long long") continue;
        for (const auto& [name, image] : names) {
            if (!has_word(declaration.parameter_types[i], name)) continue;
            parameter.type.image = image;
            // NVRTC always declares these types; the driver API's names exist only if the text declares them.
            if (name.starts_with("cuda")) parameter.spelling = name;
        }
    }
    lay_out(signature);
}

/// Adds what only the text has: the line, parameter names, and default arguments. The types come from the compiler.
void add_declaration(KernelImage& kernel, const KernelDeclaration& declaration) {
    kernel.line = declaration.line;
    for (std::size_t i = 0; i < declaration.parameters.size(); ++i) {
        if (!declaration.parameters[i].empty())
            kernel.signature.parameters[i].name = declaration.parameters[i];
    }
    kernel.signature.defaults = declaration.defaults;
    find_images(kernel.signature, declaration);
    refuse_references(kernel.signature);
}

KernelImage make_kernel(const WantedKernel& wanted, const std::string& lowered_name,
                        const std::string& reflected, const CompilePlan& plan, const DeclaredLines& lines) {
    KernelImage kernel;
    kernel.name = wanted.name;
    kernel.expression = wanted.expression;
    kernel.lowered_name = lowered_name;
    kernel.reflected = reflected;
    // An instance keeps the name expression that was asked for; a cast that selects an overload is not a name.
    const bool is_instance = wanted.expression.starts_with(wanted.name);
    kernel.signature = read_signature(reflected, is_instance ? wanted.expression : wanted.name, {});
    add_declaration(kernel, declaration_of(wanted, kernel.signature.parameters.size(), plan.found(), lines));
    return kernel;
}

/// The kernels that a program's PTX defines, by their lowered names.
std::vector<std::string> entries_of(std::string_view ptx) {
    static constexpr std::string_view directive = ".entry ";
    std::vector<std::string> entries;
    for (std::size_t at = ptx.find(directive); at != ptx.npos; at = ptx.find(directive, at)) {
        at += directive.size();
        entries.emplace_back(ptx.substr(at, ptx.find_first_of("( \t\r\n", at) - at));
    }
    return entries;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
}

Image make_image(Nvrtc::Result result, const CompilePlan& plan, const Program& program, const Nvrtc& nvrtc,
                 const DeclaredLines& lines) {
    Image image;
    image.arch = program.arch;
    image.log = std::move(result.log);
    image.absent = plan.absent();
    image.nvrtc_version = to_string(nvrtc.version());
    image.compile_milliseconds = result.milliseconds;
    const bool has_code = program.purpose == Program::Purpose::code;
    const std::size_t stride = plan.expressions_per_kernel();
    const std::vector<std::string> entries = entries_of(result.ptx);
    for (std::size_t i = 0; i < plan.wanted().size(); ++i) {
        const WantedKernel& wanted = plan.wanted()[i];
        const std::string* names = &result.lowered_names[stride * i];
        if (has_code && !contains(entries, names[0])) {
            image.absent.emplace_back(wanted.expression, "is declared, and the text does not define it");
            continue;
        }
        image.kernels.push_back(
            make_kernel(wanted, stride == 2 ? names[0] : "", names[stride - 1], plan, lines));
    }
    if (has_code) {
        image.ptx = std::move(result.ptx);
        image.cubin = std::move(result.cubin);
    }
    return image;
}

/// The image of one variable: it has no code, and one entry for the variable in place of a kernel.
Image image_of_variable(const Program& program, const Nvrtc& nvrtc, std::span<const Nvrtc::Header> headers,
                        std::vector<std::string> options) {
    make_no_code(options, nvrtc);
    const Instance& variable = program.instances.at(0);
    const std::string canonical = canonical_name(program.source.text);
    // NVRTC gives the type of a `__managed__` variable only with the second parentheses, which make it a reference.
    const auto ask = [&](const char* reflecting, bool has_name = true) {
        std::vector<std::string> names = {fmt::format(
            "bascule::signature<bascule::{}<decltype(({}))>::result_>", reflecting, variable.kernel)};
        if (has_name) names.insert(names.begin(), variable.expression);
        return nvrtc.compile(program.source.text, canonical, headers, options, names);
    };
    Nvrtc::Result result = ask("variable_of");
    if (!result.succeeded && result.log.find("must have a constant value") != result.log.npos) {
        // The address of a `__managed__` variable is not a constant expression, so NVRTC does not give its lowered name.
        Nvrtc::Result managed = ask("variable_of", false);
        if (managed.succeeded) {
            result = std::move(managed);
            result.lowered_names.insert(result.lowered_names.begin(), "");
        }
    }
    if (!result.succeeded && result.log.find("unnamed type") != result.log.npos) {
        // For `struct { int n; } v;` only the size is known.
        Nvrtc::Result nameless = ask("nameless_variable_of");
        if (nameless.succeeded) result = std::move(nameless);
    }
    if (result.succeeded) {
        Image image;
        image.arch = program.arch;
        image.compile_milliseconds = result.milliseconds;
        KernelImage& made = image.kernels.emplace_back();
        made.name = variable.kernel;
        made.expression = variable.expression;
        made.lowered_name = result.lowered_names[0];
        made.reflected = result.lowered_names[1];
        return image;
    }
    if (result.bad_option)
        fail(explain_refused_option(result.log, program, nvrtc), program, options, result.log);
    std::vector<Diagnostic> diagnostics = parse_log(result.log);
    std::erase_if(diagnostics, [](const Diagnostic& diagnostic) { return !diagnostic.is_error(); });
    // If the name is a function, or has a type without a size, the error is in the prelude, where it reads the type.
    const auto concerns_name = [](const Diagnostic& diagnostic) {
        return concerns_name_expression(diagnostic) || diagnostic.file == prelude_name;
    };
    if (!std::ranges::all_of(diagnostics, concerns_name)) {
        std::erase_if(diagnostics, concerns_name);
        fail(explain_failure(diagnostics, result.log, program.source), program, options,
             readable_log(result.log, program.source));
    }
    throw CompileError(diagnostics.empty() ? result.log : diagnostics.front().message,
                       {.log = readable_log(result.log, program.source),
                        .name_expression = variable.kernel,
                        .options = options,
                        .architecture = to_string(program.arch)});
}

/// Replaces the path of a kept source by the canonical name in the log.
Nvrtc::Result with_canonical_places(Nvrtc::Result result, const std::string& name, const Source& source) {
    const std::string canonical = canonical_name(source.text);
    if (name == canonical) return result;
    for (std::size_t at = result.log.find(name); at != result.log.npos;
         at = result.log.find(name, at + canonical.size()))
        result.log.replace(at, name.size(), canonical);
    return result;
}

// --- Kernels of an image that its text does not spell: from macros, includes and explicit instantiations

/// A kernel of an image: its C++ name, "ns::add" or "scale<float>", and its lowered name.
struct EntryName {
    std::string name;  // empty if C++ has none
    std::string lowered_name;
    std::string
        overload;  // the expression that selects it among its overloads; empty if its types are not known
};

EntryName name_of_entry(const std::string& entry) {
    const DemangledKernel kernel = demangle_kernel(entry);
    const bool is_unnamed = (kernel.name + kernel.parameters).find("(anonymous") != std::string::npos;
    if (!kernel.is_typed) return {entry.starts_with("_Z") ? "" : entry, entry, ""};  // extern "C"
    if (is_unnamed) return {"", entry, ""};
    return {kernel.name, entry, overload_expression(kernel.name, "void (*)(" + kernel.parameters + ")")};
}

/// Returns the entries of `ptx` whose lowered names are not among `known`. Omits instances of `templates`, and entries
/// of anonymous namespaces, which no name expression reaches.
std::vector<EntryName> undeclared_entries(std::string_view ptx, const std::vector<std::string>& known,
                                          const std::vector<std::string>& templates) {
    std::vector<EntryName> found;
    for (const std::string& lowered_name : entries_of(ptx)) {
        if (contains(known, lowered_name)) continue;
        EntryName entry = name_of_entry(lowered_name);
        const std::size_t open = entry.name.find('<');
        const bool is_instance = open != std::string::npos && contains(templates, entry.name.substr(0, open));
        if (!entry.name.empty() && !is_instance) found.push_back(std::move(entry));
    }
    return found;
}

std::vector<std::string> lowered_names(const Image& image) {
    std::vector<std::string> names;
    for (const KernelImage& kernel : image.kernels) names.push_back(kernel.lowered_name);
    return names;
}

/// Returns the signatures that the compiler gives for these entries. Asks for overloads by their types. One name that
/// the compiler refuses fails the whole compile; then each entry is asked for separately, by its name and by its type.
std::vector<KernelImage> signatures_of(const std::vector<EntryName>& entries, const Program& program,
                                       const Nvrtc& nvrtc) {
    Program asked = program;
    asked.purpose = Program::Purpose::signatures;
    asked.functions_too = false;
    std::vector<KernelImage> kernels;
    const auto ask = [&](std::span<const EntryName> some, const auto& is_by_type) {
        asked.instances.clear();
        for (const EntryName& entry : some)
            asked.instances.push_back({entry.name, is_by_type(entry) ? entry.overload : entry.name});
        try {
            std::vector<KernelImage> found = compile(asked, nvrtc).kernels;
            for (std::size_t i = 0; i < found.size(); ++i) {
                found[i].lowered_name = some[i].lowered_name;
                kernels.push_back(std::move(found[i]));
            }
            return true;
        } catch (const CompileError&) {
            return false;
        }
    };
    const auto is_overload = [&](const EntryName& entry) {
        return std::ranges::count(entries, entry.name, &EntryName::name) > 1 && !entry.overload.empty();
    };
    if (ask(entries, is_overload)) return kernels;
    for (const EntryName& entry : entries) {
        const auto as = [](bool by_type) { return [by_type](const EntryName&) { return by_type; }; };
        if (!ask(std::span(&entry, 1), as(false)) && !entry.overload.empty())
            ask(std::span(&entry, 1), as(true));
    }
    return kernels;
}

/// If a macro opens a namespace around a kernel, the compiler does not find the name that the text has. The kernel gets
/// that name if nothing else in the text or in the image has the same last component.
void find_in_text(std::span<KernelImage> undeclared, const Image& image,
                  const std::vector<KernelDeclaration>& found) {
    for (const KernelDeclaration& declaration : found) {
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
            std::ranges::none_of(image.absent, is_absent) || std::ranges::any_of(found, is_namesake) ||
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

/// These kernels are in the image although nobody asked for them, and they have no signatures yet.
void add_undeclared_kernels(Image& image, const Program& program, const Nvrtc& nvrtc,
                            const std::vector<KernelDeclaration>& found) {
    std::vector<std::string> templates;
    for (const KernelDeclaration& declaration : found) {
        if (declaration.is_template) templates.push_back(declaration.name);
    }
    const std::vector<EntryName> entries = undeclared_entries(image.ptx, lowered_names(image), templates);
    if (entries.empty()) return;
    std::vector<KernelImage> kernels = signatures_of(entries, program, nvrtc);
    find_in_text(kernels, image, found);
    std::ranges::move(kernels, std::back_inserter(image.kernels));
}

/// If a kernel shares its name only with device functions, its name alone identifies it.
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

/// Runs NVRTC until the plan holds; each run except the last revises the plan.
Image image_of_kernels(const Program& program, const Nvrtc& nvrtc, const std::vector<std::string>& options,
                       const HeaderManifest* reached) {
    const std::string name = program_name(program.source, program.options);
    const bool has_code = program.purpose == Program::Purpose::code;
    CompilePlan plan(program);
    DeclaredLines lines;
    const std::vector<Nvrtc::Header> headers = headers_for(program, question_of_declared_lines(program));
    PrecompiledHeader precompiled(program, nvrtc, options, headers, reached);
    const auto run = [&] {
        const std::vector<std::string> expressions = plan.name_expressions();
        std::vector<std::string> arguments = options;
        arguments.insert(arguments.end(), precompiled.options().begin(), precompiled.options().end());
        // A file of precompiled headers can only be used with the options that it was written with.
        if (program.purpose == Program::Purpose::signatures && precompiled.options().empty())
            make_no_code(arguments, nvrtc);
        Nvrtc::Result result = nvrtc.compile(program.source.text, name, headers, arguments, expressions);
        if (!precompiled.accepts(result))
            result = nvrtc.compile(program.source.text, name, headers, options, expressions);
        if (logs(jit_logger, LogLevel::debug)) {
            log(jit_logger, LogLevel::debug,
                fmt::format("NVRTC {} in {:.0f} ms: {}", to_string(nvrtc.version()), result.milliseconds,
                            fmt::join(arguments, " ")));
        }
        result = with_canonical_places(std::move(result), name, program.source);
        lines = take_declared_lines(result.log, program, expressions);
        return result;
    };

    while (true) {
        Nvrtc::Result result = run();
        if (result.succeeded) {
            Image image = make_image(std::move(result), plan, program, nvrtc, lines);
            if (!has_code || (!program.instances.empty() && !program.functions_too)) return image;
            add_undeclared_kernels(image, program, nvrtc, plan.found());
            name_sole_kernels(image, program);
            return image;
        }
        if (result.bad_option)
            fail(explain_refused_option(result.log, program, nvrtc), program, options, result.log);
        const std::vector<Diagnostic> diagnostics = parse_log(result.log);
        const bool only_names = std::ranges::all_of(diagnostics, [](const Diagnostic& diagnostic) {
            return !diagnostic.is_error() || concerns_name_expression(diagnostic);
        });
        if (only_names && plan.revise(diagnostics)) continue;
        const std::string refused =
            only_names ? plan.refused_instance(diagnostics, program.source) : std::string();
        if (!refused.empty()) fail(program.source.name + ": " + refused, program, options, result.log);
        std::vector<Diagnostic> shown = diagnostics;
        if (!only_names) std::erase_if(shown, concerns_name_expression);
        fail(explain_failure(shown, result.log, program.source, nvrtc.include_paths()) +
                 help_for_directories(shown, program.options),
             program, options, readable_log(result.log, program.source),
             at_user_places(shown, program.source));
    }
}

}  // namespace

Image compile(const Program& program, const Nvrtc& nvrtc, const HeaderManifest* reached) {
    refuse_nul(program);
    to_arguments(program.options);  // checks the names of all defines
    const std::vector<std::string> options = options_for(program, nvrtc);
    if (program.purpose == Program::Purpose::variable)
        return image_of_variable(program, nvrtc, headers_for(program), options);
    Image image = image_of_kernels(program, nvrtc, options, reached);
    if (program.purpose != Program::Purpose::code) return image;
    read_view_layouts(image, program, nvrtc, &compile);
    return image;
}

}  // namespace bascule
