#include <algorithm>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include <bascule/interface/error.hpp>
#include <bascule/jit/compiler.hpp>
#include <bascule/jit/diagnostics.hpp>
#include <bascule/jit/reflection.hpp>
#include <bascule/jit/tokenizer.hpp>

namespace bascule {
namespace {

/// Which kernels a compile asks for, and why the others are left out.
struct Plan {
    std::vector<KernelDeclaration> wanted;
    std::vector<std::pair<std::string, std::string>> absent;

    explicit Plan(std::string_view text) {
        const std::vector<KernelDeclaration> found = find_kernels(text);
        std::map<std::string, int> count;
        for (const KernelDeclaration& kernel : found) ++count[kernel.name];
        for (const KernelDeclaration& kernel : found) {
            if (kernel.is_template) {
                leave_out(kernel.name,
                          "is a template, and template arguments cannot be given yet: write a __global__ "
                          "function for the types "
                          "that you need");
            } else if (count[kernel.name] > 1) {
                leave_out(kernel.name,
                          "is overloaded, and overloads cannot be chosen yet: give each its own name");
            } else {
                wanted.push_back(kernel);
            }
        }
    }

    std::vector<std::string> name_expressions() const {
        std::vector<std::string> expressions;
        for (const KernelDeclaration& kernel : wanted) {
            expressions.push_back(kernel.name);
            expressions.push_back(signature_expression(kernel.name));
        }
        return expressions;
    }

    /// Drops the kernels that these diagnostics are about; false when none is.
    bool drop(const std::vector<Diagnostic>& diagnostics) {
        const std::size_t before = wanted.size();
        std::erase_if(wanted, [&](const KernelDeclaration& kernel) {
            const bool refused =
                std::any_of(diagnostics.begin(), diagnostics.end(),
                            [&](const Diagnostic& diagnostic) { return is_about(diagnostic, kernel.name); });
            if (refused) {
                leave_out(kernel.name,
                          "is written in the text, but the compiler does not see it: an #if removes it for "
                          "these options, or its "
                          "namespace is not what it looks like");
            }
            return refused;
        });
        return wanted.size() < before;
    }

  private:
    static bool is_about(const Diagnostic& diagnostic, const std::string& kernel) {
        static constexpr std::string_view lead = "Input name expression was: \"";
        const std::size_t at = diagnostic.message.find(lead);
        if (at == std::string::npos) return false;
        std::string_view expression = std::string_view(diagnostic.message).substr(at + lead.size());
        expression = expression.substr(0, expression.rfind('"'));
        expression.remove_prefix(std::min(expression.find_first_not_of(' '), expression.size()));
        return expression == kernel || expression == signature_expression(kernel);
    }

    void leave_out(const std::string& name, const std::string& reason) {
        const bool known =
            std::any_of(absent.begin(), absent.end(), [&](const auto& each) { return each.first == name; });
        if (!known) absent.emplace_back(name, reason);
    }
};

std::vector<std::string> all_options(const Program& program, const Nvrtc& nvrtc) {
    std::vector<std::string> options;
    options.push_back("-arch=" + to_string(program.arch));
    options.push_back(fmt::format("-include={}", prelude_name));
    if (!program.source.directory.empty()) options.push_back("-I" + program.source.directory);
    const std::vector<std::string> own = to_arguments(program.options);
    options.insert(options.end(), own.begin(), own.end());
    for (const std::string& path : nvrtc.include_paths()) options.push_back("-I" + path);
    return options;
}

std::vector<Nvrtc::Header> all_headers(const CompileOptions& options) {
    std::vector<Nvrtc::Header> headers = {{prelude_name, prelude_text()}};
    for (const auto& [name, text] : options.headers) headers.push_back({name, text});
    return headers;
}

[[noreturn]] void fail(const std::string& message, const Program& program, std::vector<std::string> options,
                       std::string log) {
    throw CompileError(message, {.log = std::move(log),
                                 .name_expression = {},
                                 .options = std::move(options),
                                 .architecture = to_string(program.arch)});
}

Image make_image(Nvrtc::Result result, const Plan& plan, const Program& program, const Nvrtc& nvrtc) {
    Image image;
    image.arch = program.arch;
    image.ptx = std::move(result.ptx);
    image.cubin = std::move(result.cubin);
    image.log = std::move(result.log);
    image.absent = plan.absent;
    image.nvrtc_version = fmt::format("{}.{}", nvrtc.version().major, nvrtc.version().minor);
    image.compile_milliseconds = result.milliseconds;
    for (std::size_t i = 0; i < plan.wanted.size(); ++i) {
        const KernelDeclaration& declaration = plan.wanted[i];
        KernelImage kernel;
        kernel.name = declaration.name;
        kernel.lowered_name = result.lowered_names[2 * i];
        kernel.signature =
            read_signature(result.lowered_names[2 * i + 1], declaration.name, declaration.parameters);
        kernel.line = declaration.line;
        image.kernels.push_back(std::move(kernel));
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

Image Compiler::compile(const Program& program) {
    const std::shared_ptr<const Nvrtc> nvrtc = this->nvrtc();
    const std::vector<std::string> options = all_options(program, *nvrtc);
    const std::vector<Nvrtc::Header> headers = all_headers(program.options);
    const std::string name = canonical_name(program.source.text);
    Plan plan(program.source.text);

    // Ends: every round but the last drops a kernel.
    while (true) {
        Nvrtc::Result result =
            nvrtc->compile(program.source.text, name, headers, options, plan.name_expressions());
        if (result.succeeded) return make_image(std::move(result), plan, program, *nvrtc);
        if (result.bad_option) {
            fail(fmt::format("NVRTC {}.{} refused an option: {}", nvrtc->version().major,
                             nvrtc->version().minor, result.log),
                 program, options, result.log);
        }
        const std::vector<Diagnostic> diagnostics = parse_log(result.log);
        const bool only_names =
            std::all_of(diagnostics.begin(), diagnostics.end(), [](const Diagnostic& diagnostic) {
                return !diagnostic.is_error || concerns_name_expression(diagnostic);
            });
        if (only_names && plan.drop(diagnostics)) continue;
        std::vector<Diagnostic> shown = diagnostics;
        if (!only_names) std::erase_if(shown, concerns_name_expression);
        fail(explain_failure(shown, result.log, program.source), program, options,
             readable_log(result.log, program.source));
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
