#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <bascule/interface/errors/did_you_mean.hpp>
#include <bascule/jit/text/name_rows.hpp>
#include <bascule/jit/text/nvrtc_options.hpp>

namespace bascule {
namespace {

struct NvrtcOption {
    /// The effect of the option in CompileOptions::extra.
    enum class InExtra : std::uint8_t {
        harmless,  ///< changes neither which files a compile reads nor where it looks for them
        unproven,  ///< may change them
        refused,   ///< `instead` says what to use
    };

    std::string_view name;        ///< "--gpu-architecture"
    std::string_view short_name;  ///< "-arch"; empty if there is none
    InExtra in_extra = InExtra::unproven;
    std::string_view instead{};  ///< for a refused option
    bool is_joined = false;      ///< -DNAME is -D with the value NAME
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

constexpr std::array options = {
    NvrtcOption{"--gpu-architecture", "-arch", refused, use_arch},
    NvrtcOption{"--gpu-code", "-code", refused, use_arch},
    NvrtcOption{"--gencode", "-gencode", refused, use_arch},
    NvrtcOption{"--std", "-std", refused, "use the option `std`"},
    NvrtcOption{"--define-macro", "-D", refused, "use the option `defines`", true},
    NvrtcOption{"--include-path", "-I", refused, "use the option `include_paths`", true},
    NvrtcOption{"--pre-include", "-include", refused, "write the #include into the text"},
    NvrtcOption{"--device-debug", "-G", refused, "use the option `debug`"},
    NvrtcOption{"--pch", "-pch", refused, "use the option `pch`"},
    NvrtcOption{"--output-file", "-o", refused, "NVRTC compiles in memory and writes no file"},
    NvrtcOption{"--dlink-time-opt", "-dlto", refused, makes_lto_ir},
    NvrtcOption{"--gen-opt-lto", "-lto", refused, makes_lto_ir},
    NvrtcOption{"--expt-relaxed-constexpr", "-expt-relaxed-constexpr", refused, use_default_device},
    NvrtcOption{"--extended-lambda", "-extended-lambda", refused, is_always_on},
    NvrtcOption{"--expt-extended-lambda", "-expt-extended-lambda", refused, is_always_on},
    NvrtcOption{"--fdevice-syntax-only", "-fdevice-syntax-only", refused, not_loadable},
    NvrtcOption{"--use_fast_math", "-use_fast_math", harmless},
    NvrtcOption{"--maxrregcount", "-maxrregcount", harmless},
    NvrtcOption{"--generate-line-info", "-lineinfo", harmless},
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

/// The row of an option by either name; null if it is not known.
const NvrtcOption* find_option(std::string_view name) {
    const auto row = std::ranges::find_if(options, [&](const NvrtcOption& each) {
        return name == each.name || (name == each.short_name && !name.empty());
    });
    return row == options.end() ? nullptr : &*row;
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

}  // namespace

std::string refusal_of_extra(std::string_view option) {
    const NvrtcOption* row = find_option(option.substr(0, option.find_first_of("= ")));
    if (row == nullptr) {
        const auto joined = std::ranges::find_if(options, [&](const NvrtcOption& each) {
            return each.is_joined && option.starts_with(each.short_name);
        });
        if (joined != options.end()) row = &*joined;
    }
    if (row != nullptr && row->in_extra == refused) return std::string(row->instead);
    if (option.find_first_not_of(" \t") == option.npos) return "it is empty";
    if (option.front() != '-')
        return "an option begins with `-`; its value belongs to the same element: \"--name=value\"";
    if (option.find_first_of(" \t") < option.find('=')) {
        return "one option per element, and its value after `=`: \"--name=value\"";
    }
    return {};
}

bool leaves_files_alone(std::string_view option) {
    const std::string_view name = name_of(option);
    const NvrtcOption* row = find_option(name);
    if (row == nullptr) return false;
    if (row->name == "--ptxas-options")
        return option != name && ptxas_leaves_files_alone(option.substr(name.size() + 1));
    return row->in_extra == harmless;
}

std::string nearest_option(std::string_view option) {
    std::vector<std::string> known;
    known.reserve(std::size(options));
    for (const NvrtcOption& each : options) known.emplace_back(each.name);
    std::string name(name_of(option));
    const std::size_t letters = name.find_first_not_of('-');
    if (letters == name.npos) return {};
    name = "--" + name.substr(letters);
    return nearest_name(name, known);
}

}  // namespace bascule
