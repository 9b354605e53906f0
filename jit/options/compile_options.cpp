// The table of compile options, and the table of NVRTC's options that `extra` accepts or refuses.
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <type_traits>

#include <fmt/format.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/wording.hpp>
#include <bascule/jit/options/compile_options.hpp>
#include <bascule/jit/options/option_table.hpp>
#include <bascule/jit/text/name_rows.hpp>

namespace bascule {
namespace {

// --- Checks of the rows

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

/// NVRTC takes C strings, so it would not read the part after a NUL.
void refuse_nul(const char* field, const std::string& text) {
    if (text.find('\0') != text.npos)
        fail_option(field, text, "it has a NUL character, which ends a C string");
}

void check_standard(const CompileOptions& options) {
    if (fits_one("c++11 c++14 c++17 c++20 c++23", options.std)) return;
    fail_option(
        "std", options.std,
        "it must be c++17, c++20, or (from NVRTC 13.3 on) c++23; c++11 and c++14 are compiled as c++17");
}

void check_defines(const CompileOptions& options) {
    for (const auto& [name, value] : options.defines) {
        if (!is_macro_name(name)) fail_option("defines", name, "it is not a macro name");
        if (value.find('\n') != value.npos) fail_option("defines", value, "a macro is one line");
        refuse_nul("defines", name);
        refuse_nul("defines", value);
    }
}

void check_include_paths(const CompileOptions& options) {
    for (const std::string& path : options.include_paths) {
        if (path.empty()) fail_option("include_paths", path, "it is empty; the current directory is \".\"");
        refuse_nul("include_paths", path);
    }
}

void check_headers(const CompileOptions& options) {
    for (const auto& [name, text] : options.headers) {
        if (name.empty()) fail_option("headers", name, "a header needs the name by which it is included");
        refuse_nul("headers", name);
        if (text.find('\0') != text.npos) fail_option("headers", name, "its text contains a NUL character");
    }
}

std::string refusal_of_extra(std::string_view option);

void check_extra(const CompileOptions& options) {
    for (const std::string& option : options.extra) {
        refuse_nul("extra", option);
        const std::string why = refusal_of_extra(option);
        if (why.empty()) continue;
        reject(ErrorKind::value, {.field = "extra", .got = option}, "`extra` cannot hold \"{}\": {}.",
               shortened(option), why);
    }
}

// --- The rows

using Options = CompileOptions;
using enum CompileOption::Content;

constexpr auto none = std::nullopt;
constexpr CompileOption::Range registers_per_thread{1, 255, "a thread can use 1 to 255 registers"};

constexpr CompileOption rows[] = {
    {"std", &Options::std, "-std --std", "-std=", "a str like 'c++17'",
     "'c++17', 'c++20', or from NVRTC 13.3 on 'c++23'; 'c++11' and 'c++14' are compiled as 'c++17'",
     &check_standard},
    {"defines", &Options::defines, "-D --define-macro", "-D",
     "a dict of macro names to str, int, bool or None",
     "dict of macro names to str, int, bool or None; None defines the bare name, which is 1", &check_defines,
     macro},
    {"include_paths", &Options::include_paths, "-I --include-path", "-I", "a list of paths",
     "list of directories for #include; relative ones are made absolute now, `~` is not expanded",
     &check_include_paths, path},
    {"headers", &Options::headers, "", none, "a dict of header names to their texts",
     "dict of names to texts, found by #include \"name\" as if they were files", &check_headers},
    {"lineinfo", &Options::lineinfo, "-lineinfo --generate-line-info", "-lineinfo", "",
     "bool, source lines in the image, for profilers; always on for the emulated device", nullptr, text,
     true},
    {"debug", &Options::debug, "-G --device-debug", "-G", "",
     R"(bool, device code for debuggers (-G), and views that check every index (define BASCULE_CHECK_BOUNDS as 0 or 1 to choose the
    checks alone))"},
    {"fast_math", &Options::fast_math, "-use_fast_math --use_fast_math", "-use_fast_math", "",
     "bool, faster and less accurate math functions (-use_fast_math)", nullptr, text, true},
    {"max_registers", &Options::max_registers, "-maxrregcount --maxrregcount",
     "-maxrregcount=", "an int or None",
     "int, the most registers per thread, 1 to 255; what does not fit is spilled to local memory", nullptr,
     text, true, registers_per_thread},
    {"arch", &Options::arch, "-arch --gpu-architecture", none, "a str like 'sm_90' or 'compute_80', or None",
     "'sm_90', 'sm_90a' or 'compute_80'; None means the current device's"},
    {"pch", &Options::pch, "-pch --pch", none, "",
     R"(bool, whether large headers are precompiled for the process's other compiles: True from the first compile on,
    which takes half as long again, False never; None, the default, from the second compile on that has the same headers.
    Needs NVRTC 12.8, and up to 1 GiB in TMPDIR, /dev/shm or /tmp; the image is the same)"},
    {"keep_sources", &Options::keep_sources, "", none, "a path of a directory",
     R"(path of a directory; the text is written to a file there, and the source lines of the image name that file, so that
    cuda-gdb and Nsight Compute show it. Turns lineinfo on. None takes BASCULE_KEEP_SOURCES, if that is set)",
     [](const Options& options) { refuse_nul("keep_sources", options.keep_sources); }, path},
    {"extra", &Options::extra, "", "", "a list of str, one NVRTC option per item",
     "list of str, further NVRTC options, one per item", &check_extra},
};

// --- NVRTC's options that have no row

/// NVRTC's options that `extra` refuses, with the advice for the message.
constexpr std::array refused_options = {
    NameRow{"--gpu-code -code --gencode -gencode", "use the option `arch`"},
    NameRow{"--pre-include -include", "write the #include into the text"},
    NameRow{"--output-file -o", "NVRTC compiles in memory and writes no file"},
    NameRow{"--dlink-time-opt -dlto --gen-opt-lto -lto",
            "texts are compiled to PTX or machine code, also to be linked; LTO-IR that was made elsewhere is "
            "loaded and linked as it is"},
    NameRow{"--expt-relaxed-constexpr -expt-relaxed-constexpr",
            "it is nvcc's; NVRTC's is -default-device, with which functions without an annotation are for "
            "kernels"},
    NameRow{"--extended-lambda -extended-lambda --expt-extended-lambda -expt-extended-lambda",
            "it is nvcc's; NVRTC takes lambdas without an option"},
    NameRow{"--fdevice-syntax-only -fdevice-syntax-only", "what it makes cannot be loaded and launched"},
};

/// NVRTC's options that change neither which files a compile reads nor where it looks for them.
constexpr std::string_view harmless_options =
    "--ftz -ftz --prec-sqrt -prec-sqrt --prec-div -prec-div --fmad -fmad --restrict -restrict "
    "--extra-device-vectorization -extra-device-vectorization --relocatable-device-code -rdc --dopt -dopt "
    "--diag-suppress -diag-suppress --diag-error -diag-error --diag-warn -diag-warn --disable-warnings -w "
    "--device-as-default-execution-space -default-device --default-device --device-int128 -device-int128 "
    "--builtin-move-forward -builtin-move-forward --brief-diagnostics -brief-diag --minimal -minimal --no-cache";

/// NVRTC's other options, which may change which files are read.
constexpr std::string_view other_options =
    "--ptxas-options -Xptxas --builtin-initializer-list --time --split-compile --device-stack-protector "
    "--no-source-include --undefine-macro --modify-stack-limit --optimization-info --device-c --device-w "
    "--display-error-number --no-display-error-number";

/// Options of ptxas that read no file, with their short names.
constexpr std::string_view harmless_to_ptxas =
    "--allow-expensive-optimizations -allow-expensive-optimizations --def-load-cache -dlcm --def-store-cache -dscm "
    "--disable-optimizer-constants -disable-optimizer-constants --disable-warnings -w --fmad -fmad "
    "--generate-line-info -lineinfo --maxrregcount -maxrregcount --opt-level -O -O0 -O1 -O2 -O3 --verbose -v "
    "--warn-on-double-precision-use -warn-double-usage --warn-on-local-memory-usage -warn-lmem-usage "
    "--warn-on-spills -warn-spills";

std::string_view name_of(std::string_view option) { return option.substr(0, option.find('=')); }

/// The option that this flag sets; null if no option has the flag. -DNAME is the flag -D with the value NAME.
const CompileOption* option_of_flag(std::string_view flag) {
    const std::string_view joined = flag.substr(0, 2);
    const std::string_view name =
        joined == "-D" || joined == "-I" ? joined : flag.substr(0, flag.find_first_of("= "));
    const auto row = std::ranges::find_if(
        rows, [&](const CompileOption& each) { return !name.empty() && fits_one(each.flags, name); });
    return row == std::end(rows) ? nullptr : &*row;
}

/// Why `extra` must not contain this option, and what to use instead; empty for an option that may be passed to NVRTC.
std::string refusal_of_extra(std::string_view option) {
    const CompileOption* const own = option_of_flag(option);
    if (own != nullptr && !own->in_extra) return fmt::format("use the option `{}`", own->name);
    const std::string_view name = option.substr(0, option.find_first_of("= "));
    if (std::string instead = find_row(refused_options, name); !instead.empty()) return instead;
    if (option.find_first_not_of(" \t") == option.npos) return "it is empty";
    if (option.front() != '-')
        return "an option begins with `-`; its value belongs to the same element: \"--name=value\"";
    if (option.find_first_of(" \t") < option.find('=')) {
        return "one option per element, and its value after `=`: \"--name=value\"";
    }
    return {};
}

/// Whether all options in a comma-separated list for ptxas are known to read no file: "-v,-O3".
bool ptxas_leaves_files_alone(std::string_view list) {
    while (true) {
        const std::size_t comma = list.find(',');
        const std::string_view option = list.substr(0, comma);
        if (!fits_one(harmless_to_ptxas, name_of(option))) return false;
        if (option.find_first_of(" \t\"'@") != option.npos) return false;
        if (comma == list.npos) return true;
        list.remove_prefix(comma + 1);
    }
}

// --- NVRTC's arguments

/// Makes a path absolute, because after a chdir a relative path would mean another directory with the same cache key.
std::string absolute(const std::string& path) {
    std::error_code failed;
    const std::filesystem::path made = std::filesystem::absolute(path, failed);
    return failed ? path : made.lexically_normal().string();
}

/// Checks a number against its range.
void check_range(const CompileOption& option, const CompileOptions& options) {
    const auto* const number = std::get_if<std::optional<int> CompileOptions::*>(&option.member);
    if (number == nullptr || !(options.**number)) return;
    const int value = *(options.**number);
    if (value < option.range.least || value > option.range.most) fail_range(option, std::to_string(value));
}

/// Appends the arguments of one option. `start` is what they begin with.
template <class Value>
void append(std::vector<std::string>& arguments, std::string_view start, const Value& value) {
    if constexpr (std::is_same_v<Value, bool>) {
        if (value) arguments.emplace_back(start);
    } else if constexpr (std::is_same_v<Value, std::string>) {
        arguments.push_back(fmt::format("{}{}", start, value));
    } else if constexpr (std::is_same_v<Value, std::optional<int>>) {
        if (value) arguments.push_back(fmt::format("{}{}", start, *value));
    } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
        for (const std::string& each : value) append(arguments, start, each);
    } else if constexpr (std::is_same_v<Value, std::vector<std::pair<std::string, std::string>>>) {
        for (const auto& [name, text] : value)
            arguments.push_back(fmt::format("{}{}{}{}", start, name, text.empty() ? "" : "=", text));
    }
}

}  // namespace

std::vector<std::string> to_arguments(const CompileOptions& options) {
    for (const CompileOption& option : rows) {
        if (option.check != nullptr) option.check(options);
        check_range(option, options);
    }
    CompileOptions passed = options;
    if (fits_one("c++11 c++14", passed.std)) passed.std = "c++17";  // the prelude and CCCL need C++17
    for (std::string& path : passed.include_paths) path = absolute(path);
    passed.lineinfo = (options.lineinfo || !options.keep_sources.empty()) && !options.debug;
    std::vector<std::string> arguments;
    for (const CompileOption& option : rows) {
        if (!option.argument) continue;
        std::visit([&](auto member) { append(arguments, *option.argument, passed.*member); }, option.member);
    }
    return arguments;
}

bool is_relocatable(const CompileOptions& options) noexcept {
    return std::ranges::any_of(options.extra, [](std::string_view option) {
        return option.starts_with("-rdc") || option.find("-relocatable-device-code") != option.npos;
    });
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

std::span<const CompileOption> compile_option_table() noexcept { return rows; }

void fail_range(const CompileOption& option, const std::string& got) {
    reject(ErrorKind::value, {.field = option.name, .got = got}, "the option `{}` is {}: {}.", option.name,
           shortened(got), option.range.meaning);
}

bool leaves_files_alone(std::string_view option) {
    const std::string_view name = name_of(option);
    if (const CompileOption* const own = option_of_flag(name)) return own->in_extra;
    if (fits_one("--ptxas-options -Xptxas", name))
        return option != name && ptxas_leaves_files_alone(option.substr(name.size() + 1));
    return fits_one(harmless_options, name);
}

std::string nearest_option(std::string_view option) {
    std::vector<std::string> known;
    const auto add = [&](std::string_view names) {
        for (const std::string_view name : words_of(names)) {
            if (name.starts_with("--")) known.emplace_back(name);
        }
    };
    for (const CompileOption& each : rows) add(each.flags);
    for (const NameRow& each : refused_options) add(each.names);
    add(harmless_options);
    add(other_options);
    std::string name(name_of(option));
    const std::size_t letters = name.find_first_not_of('-');
    if (letters == name.npos) return {};
    name = "--" + name.substr(letters);
    return nearest_name(name, known);
}

}  // namespace bascule
