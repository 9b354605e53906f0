// Its tables: the rows of compile options, and NVRTC's options that have none.
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <type_traits>

#include <fmt/format.h>

#include <bascule/interface/errors/did_you_mean.hpp>
#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/shortened.hpp>
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

constexpr CompileOption rows[] = {
    {.name = "std",
     .member = &Options::std,
     .documentation =
         "'c++17', 'c++20', or from NVRTC 13.3 on 'c++23'; 'c++11' and 'c++14' are compiled as 'c++17'",
     .flags = "-std --std",
     .argument = "-std=",
     .expected = "a str like 'c++17'",
     .check = &check_standard},
    {.name = "defines",
     .member = &Options::defines,
     .documentation = "dict of macro names to str, int, bool or None; None defines the bare name, which is 1",
     .flags = "-D --define-macro",
     .argument = "-D",
     .expected = "a dict of macro names to str, int, bool or None",
     .content = macro,
     .check = &check_defines},
    {.name = "include_paths",
     .member = &Options::include_paths,
     .documentation =
         "list of directories for #include; relative ones are made absolute now, `~` is not expanded",
     .flags = "-I --include-path",
     .argument = "-I",
     .expected = "a list of paths",
     .content = path,
     .check = &check_include_paths},
    {.name = "headers",
     .member = &Options::headers,
     .documentation = "dict of names to texts, found by #include \"name\" as if they were files",
     .expected = "a dict of header names to their texts",
     .check = &check_headers},
    {.name = "lineinfo",
     .member = &Options::lineinfo,
     .documentation = "bool, source lines in the image, for profilers; always on for the emulated device",
     .flags = "-lineinfo --generate-line-info",
     .in_extra = true,
     .argument = "-lineinfo"},
    {.name = "debug",
     .member = &Options::debug,
     .documentation =
         R"(bool, device code for debuggers (-G), and views that check every index (define BASCULE_CHECK_BOUNDS as 0 or 1 to choose the
    checks alone))",
     .flags = "-G --device-debug",
     .argument = "-G"},
    {.name = "fast_math",
     .member = &Options::fast_math,
     .documentation = "bool, faster and less accurate math functions (-use_fast_math)",
     .flags = "-use_fast_math --use_fast_math",
     .in_extra = true,
     .argument = "-use_fast_math"},
    {.name = "max_registers",
     .member = &Options::max_registers,
     .documentation =
         "int, the most registers per thread, 1 to 255; what does not fit is spilled to local memory",
     .flags = "-maxrregcount --maxrregcount",
     .in_extra = true,
     .argument = "-maxrregcount=",
     .expected = "an int or None",
     .range = {1, 255, "a thread can use 1 to 255 registers"}},
    {.name = "arch",
     .member = &Options::arch,
     .documentation = "'sm_90', 'sm_90a' or 'compute_80'; None means the current device's",
     .flags = "-arch --gpu-architecture",
     .expected = "a str like 'sm_90' or 'compute_80', or None"},
    {.name = "pch",
     .member = &Options::pch,
     .documentation =
         R"(bool, whether large headers are precompiled for the process's other compiles: True from the first compile on,
    which takes half as long again, False never; None, the default, from the second compile on that has the same headers.
    Needs NVRTC 12.8, and up to 1 GiB in TMPDIR, /dev/shm or /tmp; the image is the same)",
     .flags = "-pch --pch"},
    {.name = "keep_sources",
     .member = &Options::keep_sources,
     .documentation =
         R"(path of a directory; the text is written to a file there, and the source lines of the image name that file, so that
    cuda-gdb and Nsight Compute show it. Turns lineinfo on. None takes BASCULE_KEEP_SOURCES, if that is set)",
     .expected = "a path of a directory",
     .content = path,
     .check = [](const Options& options) { refuse_nul("keep_sources", options.keep_sources); }},
    {.name = "extra",
     .member = &Options::extra,
     .documentation = "list of str, further NVRTC options, one per item",
     .argument = "",
     .expected = "a list of str, one NVRTC option per item",
     .check = &check_extra},
};

// --- NVRTC's options that have no row

struct NvrtcOption {
    /// The effect of the option in `extra`.
    enum class InExtra : std::uint8_t {
        harmless,  ///< changes neither which files a compile reads nor where it looks for them
        unproven,  ///< may change them
        refused,   ///< `instead` says what to use
    };

    std::string_view name;        ///< "--fmad"
    std::string_view short_name;  ///< "-fmad"; empty if there is none
    InExtra in_extra = InExtra::unproven;
    std::string_view instead{};  ///< for a refused option
};
using enum NvrtcOption::InExtra;

constexpr std::string_view use_arch = "use the option `arch`";
constexpr std::string_view use_default_device =
    "it is nvcc's; NVRTC's is -default-device, with which functions without an annotation are for kernels";
constexpr std::string_view is_always_on = "it is nvcc's; NVRTC takes lambdas without an option";
constexpr std::string_view not_loadable = "what it makes cannot be loaded and launched";

constexpr std::string_view makes_lto_ir =
    "texts are compiled to PTX or machine code, also to be linked; LTO-IR that was made elsewhere is loaded and "
    "linked as it is";

constexpr std::array nvrtc_options = {
    NvrtcOption{"--gpu-code", "-code", refused, use_arch},
    NvrtcOption{"--gencode", "-gencode", refused, use_arch},
    NvrtcOption{"--pre-include", "-include", refused, "write the #include into the text"},
    NvrtcOption{"--output-file", "-o", refused, "NVRTC compiles in memory and writes no file"},
    NvrtcOption{"--dlink-time-opt", "-dlto", refused, makes_lto_ir},
    NvrtcOption{"--gen-opt-lto", "-lto", refused, makes_lto_ir},
    NvrtcOption{"--expt-relaxed-constexpr", "-expt-relaxed-constexpr", refused, use_default_device},
    NvrtcOption{"--extended-lambda", "-extended-lambda", refused, is_always_on},
    NvrtcOption{"--expt-extended-lambda", "-expt-extended-lambda", refused, is_always_on},
    NvrtcOption{"--fdevice-syntax-only", "-fdevice-syntax-only", refused, not_loadable},
    NvrtcOption{"--ftz", "-ftz", harmless},
    NvrtcOption{"--prec-sqrt", "-prec-sqrt", harmless},
    NvrtcOption{"--prec-div", "-prec-div", harmless},
    NvrtcOption{"--fmad", "-fmad", harmless},
    NvrtcOption{"--restrict", "-restrict", harmless},
    NvrtcOption{"--extra-device-vectorization", "-extra-device-vectorization", harmless},
    NvrtcOption{"--relocatable-device-code", "-rdc", harmless},
    NvrtcOption{"--dopt", "-dopt", harmless},
    NvrtcOption{"--diag-suppress", "-diag-suppress", harmless},
    NvrtcOption{"--diag-error", "-diag-error", harmless},
    NvrtcOption{"--diag-warn", "-diag-warn", harmless},
    NvrtcOption{"--disable-warnings", "-w", harmless},
    NvrtcOption{"--device-as-default-execution-space", "-default-device", harmless},
    NvrtcOption{"--default-device", "", harmless},
    NvrtcOption{"--device-int128", "-device-int128", harmless},
    NvrtcOption{"--builtin-move-forward", "-builtin-move-forward", harmless},
    NvrtcOption{"--brief-diagnostics", "-brief-diag", harmless},
    NvrtcOption{"--minimal", "-minimal", harmless},
    NvrtcOption{"--no-cache", "", harmless},
    NvrtcOption{"--ptxas-options", "-Xptxas"},
    NvrtcOption{"--builtin-initializer-list", ""},
    NvrtcOption{"--time", ""},
    NvrtcOption{"--split-compile", ""},
    NvrtcOption{"--device-stack-protector", ""},
    NvrtcOption{"--no-source-include", ""},
    NvrtcOption{"--undefine-macro", ""},
    NvrtcOption{"--modify-stack-limit", ""},
    NvrtcOption{"--optimization-info", ""},
    NvrtcOption{"--device-c", ""},
    NvrtcOption{"--device-w", ""},
    NvrtcOption{"--display-error-number", ""},
    NvrtcOption{"--no-display-error-number", ""},
};

/// Options of ptxas that read no file, with their short names.
constexpr std::string_view harmless_to_ptxas =
    "--allow-expensive-optimizations -allow-expensive-optimizations --def-load-cache -dlcm --def-store-cache -dscm "
    "--disable-optimizer-constants -disable-optimizer-constants --disable-warnings -w --fmad -fmad "
    "--generate-line-info -lineinfo --maxrregcount -maxrregcount --opt-level -O -O0 -O1 -O2 -O3 --verbose -v "
    "--warn-on-double-precision-use -warn-double-usage --warn-on-local-memory-usage -warn-lmem-usage "
    "--warn-on-spills -warn-spills";

std::string_view name_of(std::string_view option) { return option.substr(0, option.find('=')); }

/// The option that this flag sets; null if there is none. -DNAME is the flag -D with the value NAME.
const CompileOption* option_of_flag(std::string_view flag) {
    const std::string_view joined = flag.substr(0, 2);
    const std::string_view name =
        joined == "-D" || joined == "-I" ? joined : flag.substr(0, flag.find_first_of("= "));
    const auto row = std::ranges::find_if(
        rows, [&](const CompileOption& each) { return !name.empty() && fits_one(each.flags, name); });
    return row == std::end(rows) ? nullptr : &*row;
}

/// The row of an option that no member sets, by either name; null if it is not known.
const NvrtcOption* nvrtc_option(std::string_view name) {
    const auto row = std::ranges::find_if(nvrtc_options, [&](const NvrtcOption& each) {
        return name == each.name || (name == each.short_name && !name.empty());
    });
    return row == nvrtc_options.end() ? nullptr : &*row;
}

/// Why `extra` must not contain this option, and what to use instead; empty for an option that may be passed to NVRTC.
std::string refusal_of_extra(std::string_view option) {
    const CompileOption* const own = option_of_flag(option);
    if (own != nullptr && !own->in_extra) return fmt::format("use the option `{}`", own->name);
    const NvrtcOption* const row = nvrtc_option(option.substr(0, option.find_first_of("= ")));
    if (row != nullptr && row->in_extra == refused) return std::string(row->instead);
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
    const NvrtcOption* const row = nvrtc_option(name);
    if (row == nullptr) return false;
    if (row->name == "--ptxas-options")
        return option != name && ptxas_leaves_files_alone(option.substr(name.size() + 1));
    return row->in_extra == harmless;
}

std::string nearest_option(std::string_view option) {
    std::vector<std::string> known;
    for (const CompileOption& each : rows) {
        for (const std::string_view flag : words_of(each.flags)) {
            if (flag.starts_with("--")) known.emplace_back(flag);
        }
    }
    for (const NvrtcOption& each : nvrtc_options) known.emplace_back(each.name);
    std::string name(name_of(option));
    const std::size_t letters = name.find_first_not_of('-');
    if (letters == name.npos) return {};
    name = "--" + name.substr(letters);
    return nearest_name(name, known);
}

}  // namespace bascule
