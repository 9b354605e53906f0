#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include <bascule/interface/array_interface.hpp>
#include <bascule/interface/error.hpp>
#include <bascule/jit/source.hpp>

namespace bascule {
namespace {

[[noreturn]] void fail_option(const char* field, const std::string& got, const std::string& why) {
    throw ArgumentError(ArgumentError::Kind::value,
                        fmt::format("the option `{}` is \"{}\": {}.", field, shortened(got), why),
                        {.field = field, .got = got});
}

bool is_macro_name(std::string_view name) {
    // NAME or NAME(parameters)
    name = name.substr(0, name.find('('));
    const auto word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
    return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
           std::all_of(name.begin(), name.end(), word);
}

}  // namespace

Source read_source(const std::string& path) {
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    // A directory opens; only reading it fails.
    const bool readable = file && (file.peek() != std::ifstream::traits_type::eof() || errno == 0);
    std::ostringstream text;
    if (readable) text << file.rdbuf();
    if (!readable) throw Error(fmt::format("cannot read the file {}: {}.", path, std::strerror(errno)));
    Source source;
    source.text = text.str();
    source.name = path;
    const auto slash = path.rfind('/');
    source.directory = slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
    return source;
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
    const bool digits =
        std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    if (text.size() < 2 || text.size() > 3 || !digits) {
        fail_option("arch", std::string(whole), "it must be like sm_90, sm_90a or compute_80");
    }
    arch.minor = text.back() - '0';
    arch.major = std::stoi(std::string(text.substr(0, text.size() - 1)));
    return arch;
}

std::vector<std::string> to_arguments(const CompileOptions& options) {
    std::vector<std::string> arguments = {"-std=" + options.std};
    for (const auto& [name, value] : options.defines) {
        if (!is_macro_name(name)) fail_option("defines", name, "it is no macro name");
        if (value.find('\n') != value.npos) fail_option("defines", value, "a macro is one line");
        arguments.push_back(value.empty() ? "-D" + name : fmt::format("-D{}={}", name, value));
    }
    for (const std::string& path : options.include_paths) arguments.push_back("-I" + path);
    if (options.lineinfo && !options.debug) arguments.emplace_back("-lineinfo");
    if (options.debug) arguments.emplace_back("-G");
    if (options.fast_math) arguments.emplace_back("-use_fast_math");
    arguments.insert(arguments.end(), options.extra.begin(), options.extra.end());
    return arguments;
}

}  // namespace bascule
