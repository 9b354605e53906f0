#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/jit/compile/nvrtc_input.hpp>
#include <bascule/jit/headers/include_directives.hpp>
#include <bascule/jit/options/option_table.hpp>
#include <bascule/jit/text/name_rows.hpp>

namespace bascule {
namespace {

constexpr const char* defines_name = "bascule_defines.h";

/// Makes views check all indices and report wrong ones. Defined with the option `debug`, unless a define sets it to 0.
constexpr const char* check_bounds = "BASCULE_CHECK_BOUNDS";

/// Whether a macro may be meant for NVRTC's own headers or the prelude, which precede the user's text.
bool configures_nvrtc(const std::string& macro) {
    return macro.starts_with("_") || macro.starts_with("CUDA") || macro == "NDEBUG" || macro == check_bounds;
}

/// The defines that concern only the user's text. They follow NVRTC's own headers, which a define of T or type would break.
std::string defines_text(const CompileOptions& options) {
    std::string text;
    for (const auto& [name, value] : options.defines) {
        if (configures_nvrtc(name)) continue;
        text += fmt::format("#define {} {}\n", name, value.empty() ? "1" : value);
    }
    return text;
}

/// Options of nvcc and host compilers, with what to use instead.
constexpr std::array options_elsewhere = {
    NameRow{"-O*", "NVRTC always optimises: leave it out"},
    NameRow{"-g", "for line numbers it is -lineinfo, for a debugger the option `debug`"},
    NameRow{"-W* -X* -f* -m* -pthread -shared -c -x -ccbin* --compiler-options*",
            "it is for a host compiler: leave it out"},
    NameRow{"-lcu* -lnv* -lm -L* -rdynamic", "nothing is linked: leave it out"},
};

/// Whether the text may name something in the prelude. Comments count too, which does no harm.
bool may_name_prelude(std::string_view text) {
    // %:%: is another spelling of ##, and ??= one of #. A backslash at the end of a line may join two parts of a word.
    static constexpr std::array<std::string_view, 7> words = {
        "bascule", "include", "##", "%:%:", "??", "\\\n", "\\\r"};
    return std::ranges::any_of(words, [&](std::string_view word) { return text.find(word) != text.npos; });
}

}  // namespace

const std::string& prelude_for(const Program& program) {
    const CompileOptions& options = program.options;
    const bool whole =
        program.purpose == Program::Purpose::variable || options.debug || !options.extra.empty() ||
        may_name_prelude(program.source.text) ||
        std::ranges::any_of(options.defines,
                            [](const auto& define) {
                                return may_name_prelude(define.first) || may_name_prelude(define.second) ||
                                       define.first == check_bounds;
                            }) ||
        std::ranges::any_of(program.instances,
                            [](const Instance& instance) { return may_name_prelude(instance.expression); });
    return whole ? whole_prelude() : signature_prelude();
}

std::vector<std::string> options_for(const Program& program, const Nvrtc& nvrtc) {
    std::vector<std::string> options;
    options.push_back("-arch=" + to_string(program.arch));
    options.push_back(fmt::format("-include={}", prelude_name));
    options.push_back(fmt::format("-include={}", defines_name));
    if (!program.source.directory.empty()) options.push_back("-I" + program.source.directory);
    to_arguments(program.options);  // checks the names of all defines
    CompileOptions own = program.options;
    std::erase_if(own.defines, [](const auto& define) { return !configures_nvrtc(define.first); });
    const bool defined =
        std::ranges::any_of(own.defines, [](const auto& define) { return define.first == check_bounds; });
    if (own.debug && !defined) own.defines.emplace_back(check_bounds, "1");
    for (std::string& argument : to_arguments(own)) options.push_back(std::move(argument));
    for (const std::string& path : nvrtc.include_paths()) options.push_back("-I" + path);
    return options;
}

std::vector<Nvrtc::Header> headers_for(const Program& program, const std::string& last) {
    std::vector<Nvrtc::Header> headers = {{prelude_name, prelude_for(program)},
                                          {defines_name, defines_text(program.options) + last}};
    for (const auto& [name, text] : memory_headers(program.options))
        headers.push_back({name, std::string(without_byte_order_mark(text))});
    return headers;
}

void make_no_code(std::vector<std::string>& options, const Nvrtc& nvrtc) {
    const Nvrtc::Version version = nvrtc.version();
    if (version.major > 12 || version.minor >= 4) options.push_back("-fdevice-syntax-only");
}

std::string explain_refused_option(const std::string& log, const Program& program, const Nvrtc& nvrtc) {
    static constexpr std::string_view unknown = "unrecognized option ";
    std::string words = log;
    while (words.ends_with('\n')) words.pop_back();
    std::string text = fmt::format("NVRTC {} refused an option: {}", to_string(nvrtc.version()), words);
    if (words.find("gpu-architecture") != words.npos) {
        const std::vector<int>& archs = nvrtc.supported_archs();
        text += fmt::format("; {} was requested, it supports {}", to_string(program.arch),
                            fmt::join(archs, ", "));
        const int wanted = 10 * program.arch.major + program.arch.minor;
        if (nvrtc.version().major > 12 && !archs.empty() && wanted < archs.front()) {
            text += fmt::format("; NVRTC 12 compiles for older devices: run `{}`", pip_command_for({12, -1}));
        }
    }
    if (words.find("--std") != words.npos) {
        text += fmt::format("; {} was requested; use c++17 or c++20: c++23 needs NVRTC 13.3",
                            program.options.std);
    }
    if (const std::size_t at = words.find(unknown); at != words.npos) {
        const std::string_view option = std::string_view(words).substr(
            at + unknown.size(), words.find(' ', at + unknown.size()) - at - unknown.size());
        const std::string nearest = nearest_option(option);
        const std::string elsewhere = find_row(options_elsewhere, option);
        if (!nearest.empty()) text += fmt::format("; did you mean {}?", nearest);
        if (nearest.empty() && !elsewhere.empty()) text += "; " + elsewhere;
    }
    return text.ends_with('?') ? text : text + ".";
}

}  // namespace bascule
