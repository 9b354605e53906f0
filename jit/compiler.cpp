#include <algorithm>
#include <map>
#include <mutex>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/error.hpp>
#include <bascule/jit/compiler.hpp>
#include <bascule/jit/diagnostics.hpp>
#include <bascule/jit/diagnostics_help.hpp>
#include <bascule/jit/reflection.hpp>
#include <bascule/jit/tokenizer.hpp>

namespace bascule {
namespace {

/// One kernel that a compile asks for. Several declarations stand for it where an #if chooses between them.
struct WantedKernel {
    std::string name;
    std::vector<KernelDeclaration> declarations;
};

/// Which kernels a compile asks for, and why the others are left out.
class Plan {
  public:
    explicit Plan(std::string_view text) {
        const std::vector<KernelDeclaration> found = find_kernels(text);
        for (const KernelDeclaration& declaration : found) {
            if (!declaration.is_template) want(declaration);
        }
        for (const KernelDeclaration& declaration : found) {
            if (declaration.is_template && find(declaration.name) == nullptr) {
                leave_out(declaration.name,
                          "is a template, and template arguments cannot be given yet: write a __global__ "
                          "function for the types that you need");
            }
        }
    }

    const std::vector<WantedKernel>& wanted() const noexcept { return wanted_; }
    const std::vector<std::pair<std::string, std::string>>& absent() const noexcept { return absent_; }

    std::vector<std::string> name_expressions() const {
        std::vector<std::string> expressions;
        for (const WantedKernel& kernel : wanted_) {
            expressions.push_back(kernel.name);
            expressions.push_back(signature_expression(kernel.name));
        }
        return expressions;
    }

    /// Drops the kernels that these diagnostics are about; false when none is.
    bool drop(const std::vector<Diagnostic>& diagnostics) {
        const std::size_t before = wanted_.size();
        std::erase_if(wanted_, [&](const WantedKernel& kernel) {
            const std::string reason = refusal(kernel.name, diagnostics);
            if (!reason.empty()) leave_out(kernel.name, reason);
            return !reason.empty();
        });
        return wanted_.size() < before;
    }

  private:
    WantedKernel* find(const std::string& name) {
        const auto known = std::find_if(wanted_.begin(), wanted_.end(),
                                        [&](const WantedKernel& kernel) { return kernel.name == name; });
        return known == wanted_.end() ? nullptr : &*known;
    }

    void want(const KernelDeclaration& declaration) {
        WantedKernel* known = find(declaration.name);
        if (known == nullptr) known = &wanted_.emplace_back(WantedKernel{declaration.name, {}});
        known->declarations.push_back(declaration);
    }

    /// Why the compiler does not give this kernel; empty when nothing is said against it.
    static std::string refusal(const std::string& kernel, const std::vector<Diagnostic>& diagnostics) {
        const std::string signature = signature_expression(kernel);
        std::string first;
        for (const Diagnostic& diagnostic : diagnostics) {
            if (!concerns_name_expression(diagnostic)) continue;
            const std::string expression = name_expression_of(diagnostic);
            if (expression != kernel && expression != signature) continue;
            const std::string& message = diagnostic.message;
            if (message.find("overloaded function \"") != message.npos) {
                return "is overloaded, and overloads cannot be chosen yet: give each its own name";
            }
            if (message.find("is undefined") != message.npos ||
                message.find("has no member") != message.npos) {
                return "is written in the text, but the compiler does not see it: an #if removes it for "
                       "these "
                       "options, or its namespace is not what it looks like";
            }
            if (first.empty()) first = "has parameters that cannot be read. NVRTC says: " + message;
        }
        return first;
    }

    void leave_out(const std::string& name, const std::string& reason) {
        const bool known =
            std::any_of(absent_.begin(), absent_.end(), [&](const auto& each) { return each.first == name; });
        if (!known) absent_.emplace_back(name, reason);
    }

    std::vector<WantedKernel> wanted_;
    std::vector<std::pair<std::string, std::string>> absent_;
};

constexpr const char* defines_name = "bascule_defines.h";

/// Whether a macro may be meant for NVRTC's own headers, which stand before everything else.
bool configures_nvrtc(const std::string& macro) {
    return macro.starts_with("_") || macro.starts_with("CUDA") || macro == "NDEBUG";
}

/// A define of T or type would break NVRTC's own headers: those that are for the user's text alone come
/// behind.
std::string defines_text(const CompileOptions& options) {
    std::string text;
    for (const auto& [name, value] : options.defines) {
        if (configures_nvrtc(name)) continue;
        text += fmt::format("#define {} {}\n", name, value.empty() ? "1" : value);
    }
    return text;
}

std::vector<std::string> all_options(const Program& program, const Nvrtc& nvrtc) {
    std::vector<std::string> options;
    options.push_back("-arch=" + to_string(program.arch));
    options.push_back(fmt::format("-include={}", prelude_name));
    options.push_back(fmt::format("-include={}", defines_name));
    if (!program.source.directory.empty()) options.push_back("-I" + program.source.directory);
    CompileOptions own = program.options;
    std::erase_if(own.defines, [](const auto& define) { return !configures_nvrtc(define.first); });
    for (std::string& argument : to_arguments(own)) options.push_back(std::move(argument));
    for (const std::string& path : nvrtc.include_paths()) options.push_back("-I" + path);
    return options;
}

std::vector<Nvrtc::Header> all_headers(const CompileOptions& options) {
    std::vector<Nvrtc::Header> headers = {{prelude_name, prelude_text()},
                                          {defines_name, defines_text(options)}};
    for (const auto& [name, text] : options.headers) headers.push_back({name, text});
    return headers;
}

[[noreturn]] void fail(const std::string& message, const Program& program, std::vector<std::string> options,
                       std::string log, std::vector<Diagnostic> diagnostics = {}) {
    throw CompileError(message, {.log = std::move(log),
                                 .name_expression = {},
                                 .options = std::move(options),
                                 .architecture = to_string(program.arch),
                                 .diagnostics = std::move(diagnostics)});
}

/// NVRTC takes C strings: it would compile what stands before the first NUL.
void refuse_nul(const Program& program) {
    const std::size_t at = program.source.text.find('\0');
    if (at == std::string::npos) return;
    const auto line = std::count(program.source.text.begin(),
                                 program.source.text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    fail(fmt::format("{}:{}: the text contains a NUL character. Remove it.", program.source.name,
                     line + program.source.first_line),
         program, {}, {});
}

std::string explain_option(const std::string& log, const Program& program, const Nvrtc& nvrtc) {
    static constexpr std::string_view unknown = "unrecognized option ";
    std::string words = log;
    while (words.ends_with('\n')) words.pop_back();
    std::string text =
        fmt::format("NVRTC {}.{} refused an option: {}", nvrtc.version().major, nvrtc.version().minor, words);
    if (words.find("gpu-architecture") != words.npos) {
        text += fmt::format("; {} was asked for, it knows {}", to_string(program.arch),
                            fmt::join(nvrtc.supported_archs(), ", "));
    }
    if (words.find("--std") != words.npos) {
        text += fmt::format("; {} was asked for, which c++17 and c++20 may replace: c++23 needs NVRTC 13.3",
                            program.options.std);
    }
    if (const std::size_t at = words.find(unknown); at != words.npos) {
        const std::string nearest = nearest_option(std::string_view(words).substr(
            at + unknown.size(), words.find(' ', at + unknown.size()) - at - unknown.size()));
        if (!nearest.empty()) text += fmt::format("; did you mean {}?", nearest);
    }
    return text.ends_with('?') ? text : text + ".";
}

/// The declaration that the compiler saw, as far as the number of parameters tells.
const KernelDeclaration& fitting(const WantedKernel& kernel, std::size_t parameters) {
    for (const KernelDeclaration& declaration : kernel.declarations) {
        if (declaration.parameters.size() == parameters) return declaration;
    }
    return kernel.declarations.front();
}

KernelImage make_kernel(const WantedKernel& wanted, const std::string& lowered_name,
                        const std::string& lowered_signature) {
    KernelImage kernel;
    kernel.name = wanted.name;
    kernel.expression = wanted.name;
    kernel.reflected = lowered_signature;
    kernel.lowered_name = lowered_name;
    const std::size_t parameters = read_signature(lowered_signature, wanted.name, {}).parameters.size();
    const KernelDeclaration& declaration = fitting(wanted, parameters);
    kernel.parameter_names = declaration.parameters;
    kernel.signature = read_signature(lowered_signature, wanted.name, declaration.parameters);
    kernel.line = declaration.line;
    return kernel;
}

Image make_image(Nvrtc::Result result, const Plan& plan, const Program& program, const Nvrtc& nvrtc) {
    Image image;
    image.arch = program.arch;
    image.ptx = std::move(result.ptx);
    image.cubin = std::move(result.cubin);
    image.log = std::move(result.log);
    image.absent = plan.absent();
    image.nvrtc_version = fmt::format("{}.{}", nvrtc.version().major, nvrtc.version().minor);
    image.compile_milliseconds = result.milliseconds;
    for (std::size_t i = 0; i < plan.wanted().size(); ++i) {
        image.kernels.push_back(
            make_kernel(plan.wanted()[i], result.lowered_names[2 * i], result.lowered_names[2 * i + 1]));
    }
    return image;
}

}  // namespace

struct Compiler::State {
    std::mutex mutex;
    ToolkitLocation location;
    std::shared_ptr<const Nvrtc> nvrtc;
};

Compiler::Compiler(ToolkitLocation location) : state_(std::make_unique<State>()) {
    state_->location = std::move(location);
}
Compiler::~Compiler() = default;

Image Compiler::compile(const Program& program, const Nvrtc& nvrtc) {
    refuse_nul(program);
    to_arguments(program.options);  // checks the names of all defines
    const std::vector<std::string> options = all_options(program, nvrtc);
    const std::vector<Nvrtc::Header> headers = all_headers(program.options);
    const std::string name = canonical_name(program.source.text);
    Plan plan(program.source.text);

    // Ends: every round but the last drops a kernel.
    while (true) {
        Nvrtc::Result result =
            nvrtc.compile(program.source.text, name, headers, options, plan.name_expressions());
        if (result.succeeded) return make_image(std::move(result), plan, program, nvrtc);
        if (result.bad_option) fail(explain_option(result.log, program, nvrtc), program, options, result.log);
        const std::vector<Diagnostic> diagnostics = parse_log(result.log);
        const bool only_names =
            std::all_of(diagnostics.begin(), diagnostics.end(), [](const Diagnostic& diagnostic) {
                return !diagnostic.is_error() || concerns_name_expression(diagnostic);
            });
        if (only_names && plan.drop(diagnostics)) continue;
        std::vector<Diagnostic> shown = diagnostics;
        if (!only_names) std::erase_if(shown, concerns_name_expression);
        fail(explain_failure(shown, result.log, program.source, nvrtc.include_paths()), program, options,
             readable_log(result.log, program.source), at_user_places(shown, program.source));
    }
}

std::shared_ptr<const Nvrtc> Compiler::nvrtc() {
    const std::lock_guard lock(state_->mutex);
    if (state_->nvrtc == nullptr) state_->nvrtc = std::make_shared<const Nvrtc>(state_->location);
    return state_->nvrtc;
}

void Compiler::set_location(ToolkitLocation location) {
    const std::lock_guard lock(state_->mutex);
    if (location == state_->location) return;
    state_->location = std::move(location);
    state_->nvrtc = nullptr;
}

}  // namespace bascule
