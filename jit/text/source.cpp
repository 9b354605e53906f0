#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/shortened.hpp>
#include <bascule/jit/files/digest.hpp>
#include <bascule/jit/files/paths.hpp>
#include <bascule/jit/text/nvrtc_options.hpp>
#include <bascule/jit/text/source.hpp>

namespace bascule {
namespace {

[[noreturn]] void fail_option(const char* field, const std::string& got, const std::string& why) {
    reject(ErrorKind::value, {.field = field, .got = got}, "the option `{}` is \"{}\": {}.", field,
           shortened(got), why);
}

bool is_macro_name(std::string_view name) {
    // NAME or NAME(parameters)
    name = name.substr(0, name.find('('));
    const auto word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
    return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
           std::ranges::all_of(name, word);
}

/// Makes a path absolute, because after a chdir a relative path would mean another directory with the same cache key.
std::string absolute(const std::string& path) {
    std::error_code failed;
    const std::filesystem::path made = std::filesystem::absolute(path, failed);
    return failed ? path : made.lexically_normal().string();
}

/// NVRTC takes C strings, so it would not read the part after a NUL.
void refuse_nul(const char* field, const std::string& text) {
    if (text.find('\0') != text.npos)
        fail_option(field, text, "it has a NUL character, which ends a C string");
}

void check(const CompileOptions& options) {
    static constexpr std::array<std::string_view, 5> standards = {"c++11", "c++14", "c++17", "c++20",
                                                                  "c++23"};
    if (std::ranges::find(standards, options.std) == standards.end()) {
        fail_option(
            "std", options.std,
            "it must be c++17, c++20, or (from NVRTC 13.3 on) c++23; c++11 and c++14 are compiled as c++17");
    }
    for (const auto& [name, value] : options.defines) {
        if (!is_macro_name(name)) fail_option("defines", name, "it is not a macro name");
        if (value.find('\n') != value.npos) fail_option("defines", value, "a macro is one line");
        refuse_nul("defines", name);
        refuse_nul("defines", value);
    }
    for (const std::string& path : options.include_paths) {
        if (path.empty()) fail_option("include_paths", path, "it is empty; the current directory is \".\"");
        refuse_nul("include_paths", path);
    }
    for (const auto& [name, text] : options.headers) {
        if (name.empty()) fail_option("headers", name, "a header needs the name by which it is included");
        refuse_nul("headers", name);
        if (text.find('\0') != text.npos) fail_option("headers", name, "its text contains a NUL character");
    }
    if (options.max_registers && *options.max_registers < 1) {
        fail_option("max_registers", std::to_string(*options.max_registers), "a thread needs at least one");
    }
    refuse_nul("keep_sources", options.keep_sources);
    for (const std::string& option : options.extra) {
        refuse_nul("extra", option);
        const std::string why = refusal_of_extra(option);
        if (why.empty()) continue;
        reject(ErrorKind::value, {.field = "extra", .got = option}, "`extra` cannot hold \"{}\": {}.",
               shortened(option), why);
    }
}

/// The meaning of `#line 7 "file"` and `# 7 "file"` for the next line.
struct LineDirective {
    int line;
    bool names_file;
};

std::optional<LineDirective> line_directive(std::string_view line) {
    const auto skip = [&](std::string_view blanks) {
        line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
    };
    skip(" \t");
    if (!line.starts_with('#')) return {};
    line.remove_prefix(1);
    skip(" \t");
    if (line.starts_with("line ") || line.starts_with("line\t")) line.remove_prefix(5);
    skip(" \t");
    LineDirective found{};
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), found.line);
    if (error != std::errc() || found.line < 0) return {};
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    skip(" \t\r");
    found.names_file = line.starts_with('"');
    return found;
}

}  // namespace

Source read_source(const std::string& path) {
    if (path.find('\0') != path.npos) {
        reject(ErrorKind::value, {.field = "file", .got = path},
               "the name \"{}\" has a NUL character, and no file's name has one.", shortened(path));
    }
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    // Opening a directory succeeds; only reading it fails.
    const bool readable = file && (file.peek() != std::ifstream::traits_type::eof() || errno == 0);
    std::ostringstream text;
    if (readable) text << file.rdbuf();
    if (!readable) {
        const int code = errno;
        throw FileError(fmt::format("cannot read the file {}: {}.", path, std::strerror(code)), path, code);
    }
    Source source;
    source.text = text.str();
    source.name = path;
    const auto slash = path.rfind('/');
    source.directory = slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
    return source;
}

std::string_view source_line_of(std::string_view text, int line) {
    for (int i = 1; i < line; ++i) {
        const std::size_t end = text.find('\n');
        if (end == text.npos) return {};
        text.remove_prefix(end + 1);
    }
    text = text.substr(0, text.find('\n'));
    if (text.ends_with('\r')) text.remove_suffix(1);
    return text;
}

int line_in_text(std::string_view text, int line) {
    int found = line;
    // The line after the last directive is `begin`; the compiler calls it `called`.
    int at = 1, begin = 1, called = 1;
    bool renamed = false;  // true if these lines belong to another file
    const auto look = [&] {
        if (!renamed && line >= called && line - called < at - begin) found = begin + line - called;
    };
    for (; !text.empty(); ++at) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        if (const auto directive = line_directive(text.substr(0, end))) {
            look();
            renamed = renamed || directive->names_file;
            begin = at + 1;
            called = directive->line;
        }
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    look();
    return found;
}

std::string canonical_name(const std::string& text) {
    return fmt::format("/bascule/{}.cu", to_string(digest_of(text)));
}

std::string program_name(const Source& source, const CompileOptions& options) {
    std::string canonical = canonical_name(source.text);
    if (options.keep_sources.empty()) return canonical;
    return absolute_path(options.keep_sources) + canonical.substr(canonical.rfind('/'));
}

std::string to_string(Arch arch) {
    const std::string suffix = arch.suffix == '\0' ? "" : std::string(1, arch.suffix);
    return fmt::format("{}_{}{}{}", arch.is_virtual ? "compute" : "sm", arch.major, arch.minor, suffix);
}

Arch parse_arch(std::string_view text) {
    const std::string_view whole = text;
    Arch arch;
    if (text.starts_with("sm_")) {
        text.remove_prefix(3);
    } else if (text.starts_with("compute_")) {
        arch.is_virtual = true;
        text.remove_prefix(8);
    } else {
        fail_option("arch", std::string(whole), "it must be like sm_90, sm_90a or compute_80");
    }
    if (!text.empty() && (text.back() == 'a' || text.back() == 'f')) {
        arch.suffix = text.back();
        text.remove_suffix(1);
    }
    const bool digits = std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
    if (text.size() < 2 || text.size() > 3 || !digits) {
        fail_option("arch", std::string(whole), "it must be like sm_90, sm_90a or compute_80");
    }
    arch.minor = text.back() - '0';
    arch.major = std::stoi(std::string(text.substr(0, text.size() - 1)));
    return arch;
}

std::vector<std::string> to_arguments(const CompileOptions& options) {
    check(options);
    const bool older = options.std == "c++11" || options.std == "c++14";  // the prelude and CCCL need C++17
    std::vector<std::string> arguments = {"-std=" + (older ? "c++17" : options.std)};
    for (const auto& [name, value] : options.defines) {
        arguments.push_back(value.empty() ? "-D" + name : fmt::format("-D{}={}", name, value));
    }
    for (const std::string& path : options.include_paths) arguments.push_back("-I" + absolute(path));
    const bool lineinfo = options.lineinfo || !options.keep_sources.empty();
    if (lineinfo && !options.debug) arguments.emplace_back("-lineinfo");
    if (options.debug) arguments.emplace_back("-G");
    if (options.fast_math) arguments.emplace_back("-use_fast_math");
    if (options.max_registers) arguments.push_back(fmt::format("-maxrregcount={}", *options.max_registers));
    arguments.insert(arguments.end(), options.extra.begin(), options.extra.end());
    return arguments;
}

}  // namespace bascule
