#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/jit/compile/compile.hpp>
#include <bascule/jit/compile/compile_plan.hpp>
#include <bascule/jit/compile/nvrtc_input.hpp>
#include <bascule/jit/compile/precompiled_header.hpp>
#include <bascule/jit/compile/view_layouts.hpp>
#include <bascule/jit/diagnostics/diagnostics.hpp>
#include <bascule/jit/diagnostics/diagnostics_help.hpp>
#include <bascule/jit/process/log.hpp>
#include <bascule/jit/signatures/reflection.hpp>
#include <bascule/jit/text/lexer.hpp>

namespace bascule {
namespace {

using Options = std::vector<std::string>;

// The steps, in their order.
void refuse_nul(const Program& program);
Image image_of_variable(const Program& program, const Nvrtc& nvrtc, std::span<const Nvrtc::Header> headers,
                        Options options);
Image image_of_kernels(const Program& program, const Nvrtc& nvrtc, const Options& options,
                       const HeaderManifest* reached);
Image make_image(Nvrtc::Result result, const CompilePlan& plan, const Program& program, const Nvrtc& nvrtc,
                 const DeclaredLines& lines);
void add_undeclared_kernels(Image& image, const Program& program, const Nvrtc& nvrtc,
                            const std::vector<KernelDeclaration>& in_text);
void add_view_layouts(Image& image, const Program& program, const Nvrtc& nvrtc);

[[noreturn]] void fail(const std::string& message, const Program& program, Options options, std::string log,
                       std::vector<Diagnostic> diagnostics = {});

}  // namespace

Image compile(const Program& program, const Nvrtc& nvrtc, const HeaderManifest* reached) {
    refuse_nul(program);
    const Options options = options_for(program, nvrtc);
    if (program.purpose == Program::Purpose::variable)
        return image_of_variable(program, nvrtc, headers_for(program), options);
    Image image = image_of_kernels(program, nvrtc, options, reached);
    if (program.purpose == Program::Purpose::code) add_view_layouts(image, program, nvrtc);
    return image;
}

namespace {

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

// --- Kernels

/// Replaces the path of a kept source by the canonical name in the log.
Nvrtc::Result with_canonical_places(Nvrtc::Result result, const std::string& name, const Source& source) {
    const std::string canonical = canonical_name(source.text);
    if (name == canonical) return result;
    for (std::size_t at = result.log.find(name); at != result.log.npos;
         at = result.log.find(name, at + canonical.size()))
        result.log.replace(at, name.size(), canonical);
    return result;
}

/// Runs NVRTC until the plan holds; each run except the last revises the plan.
Image image_of_kernels(const Program& program, const Nvrtc& nvrtc, const std::vector<std::string>& options,
                       const HeaderManifest* reached) {
    const std::string name = program_name(program.source, program.options);
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
        Nvrtc::Result result = nvrtc.run(program.source.text, name, headers, arguments, expressions);
        if (!precompiled.accepts(result))
            result = nvrtc.run(program.source.text, name, headers, options, expressions);
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
            const bool has_all_functions = program.instances.empty() || program.functions_too;
            if (program.purpose == Program::Purpose::code && has_all_functions) {
                add_undeclared_kernels(image, program, nvrtc, plan.found());
                name_sole_kernels(image, program);
            }
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
    for (std::size_t at = declaration.find(name); at != declaration.npos;
         at = declaration.find(name, at + 1)) {
        const std::size_t end = at + name.size();
        if ((at == 0 || !continues_word(declaration[at - 1])) &&
            (end == declaration.size() || !continues_word(declaration[end])))
            return true;
    }
    return false;
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
        if (has_code && std::ranges::find(entries, names[0]) == entries.end()) {
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

// --- Kernels that the text does not spell

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
            std::vector<KernelImage> found =
                image_of_kernels(asked, nvrtc, options_for(asked, nvrtc), nullptr).kernels;
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

/// Adds the kernels that are in the PTX although nobody asked for them, with the signatures that the compiler gives.
void add_undeclared_kernels(Image& image, const Program& program, const Nvrtc& nvrtc,
                            const std::vector<KernelDeclaration>& in_text) {
    const std::vector<EntryName> entries = undeclared_entries(image, in_text);
    if (entries.empty()) return;
    std::vector<KernelImage> kernels = signatures_of(entries, program, nvrtc);
    name_as_in_text(kernels, image, in_text);
    std::ranges::move(kernels, std::back_inserter(image.kernels));
}

// --- Views

/// Finds where spans and mdspans keep their members, if parameters have such types: one compile for all of them.
void add_view_layouts(Image& image, const Program& program, const Nvrtc& nvrtc) {
    const ViewQuestion question = question_about_views(image, program, nvrtc);
    if (question.views.empty()) return;
    std::optional<ViewLayouts> layouts = remembered_layouts(question);
    if (!layouts) {
        layouts.emplace();
        try {
            const std::vector<std::string> options = options_for(question.program, nvrtc);
            layouts = layouts_in(image_of_kernels(question.program, nvrtc, options, nullptr).ptx, question);
        } catch (const CompileError&) {
            // The views are not constant-initialised: their types have no layout, and arguments for them are refused.
        }
        remember(question, *layouts);
    }
    set_layouts(image, *layouts);
}

// --- A variable

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
        return nvrtc.run(program.source.text, canonical, headers, options, names);
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
    // If the name is a function, or has a type without a size, the error is in the part of the prelude that reads
    // types.
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

[[noreturn]] void fail(const std::string& message, const Program& program, Options options, std::string log,
                       std::vector<Diagnostic> diagnostics) {
    throw CompileError(message, {.log = std::move(log),
                                 .options = std::move(options),
                                 .architecture = to_string(program.arch),
                                 .diagnostics = std::move(diagnostics)});
}

}  // namespace
}  // namespace bascule
