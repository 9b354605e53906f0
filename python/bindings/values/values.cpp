// bascule.CompileOptions, Diagnostic and CacheStatistics.
#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/ranges.h>

#include <bascule/interface/errors/diagnostic.hpp>
#include <bascule/interface/errors/did_you_mean.hpp>
#include <bascule/interface/errors/rejection.hpp>
#include <bascule/jit/cache/cache.hpp>
#include <bascule/jit/text/source.hpp>

#include "classes/property_repr.hpp"
#include "parts.hpp"
#include "support/attributes.hpp"
#include "support/integers.hpp"
#include "support/without_gil.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace bascule::python {
namespace {

[[noreturn]] void fail_option(const char* name, const std::string& expected, py::handle got) {
    const auto text = std::string(py::repr(got));
    reject(ErrorKind::type, {.field = name, .expected = expected, .got = text},
           "the option `{}` must be {}, got {}.", name, expected, text);
}

std::string to_text(const char* name, const char* expected, py::handle got) {
    if (!PyUnicode_Check(got.ptr())) fail_option(name, expected, got);
    return got.cast<std::string>();
}

bool to_flag(const char* name, py::handle got) {
    if (!PyBool_Check(got.ptr())) fail_option(name, "True or False", got);
    return got.cast<bool>();
}

/// Converts a value to macro text. A float would be ambiguous: 1.5 is a double, 1.5f a float.
std::string to_macro(py::handle value) {
    if (value.is_none()) return {};
    if (PyBool_Check(value.ptr())) return value.cast<bool>() ? "1" : "0";
    if (PyIndex_Check(value.ptr()) != 0) return py::str(to_int(value));
    return to_text("defines", "a dict of names to str, int, bool or None; write a float as a str, \"1.5f\"",
                   value);
}

std::string to_path(const char* option, const char* expected, py::handle value) {
    if (!PyUnicode_Check(value.ptr()) && !PyBytes_Check(value.ptr()) && !has_attribute(value, "__fspath__")) {
        fail_option(option, expected, value);
    }
    const py::module_ os = py::module_::import("os");
    auto path = to_text(option, expected, os.attr("fsdecode")(value));
    if (path.starts_with("~") && !os.attr("path").attr("isdir")(path).cast<bool>()) {
        reject(ErrorKind::value, {.field = option, .got = path},
               "the option `{}` has \"{}\": `~` is not expanded. Use os.path.expanduser(\"{}\").", option,
               path, path);
    }
    return path.empty() ? path : os.attr("path").attr("abspath")(path).cast<std::string>();
}

/// Appends the items of a list, converted by `convert`.
template <class Convert>
void set_items(std::vector<std::string>& items, const char* name, const char* expected, py::handle value,
               const Convert& convert) {
    if (!PyList_Check(value.ptr()) && !PyTuple_Check(value.ptr())) fail_option(name, expected, value);
    for (py::handle item : value) items.push_back(convert(name, expected, item));
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

/// Adds the entries of a dict by name, with values converted by `convert`.
template <class Convert>
void set_pairs(Pairs& pairs, const char* name, const char* expected, py::handle value,
               const Convert& convert) {
    if (!PyDict_Check(value.ptr())) fail_option(name, expected, value);
    for (auto [key, entry] : copy_of(value)) {
        pairs.emplace_back(to_text(name, expected, key), convert(name, expected, entry));
    }
}

template <bool CompileOptions::*option>
void set_flag(CompileOptions& options, const char* name, py::handle value) {
    options.*option = to_flag(name, value);
}

void set_max_registers(CompileOptions& options, const char* name, py::handle value) {
    if (value.is_none()) return;
    if (!is_integer(value)) fail_option(name, "an int or None", value);
    const py::object integer = to_int(value);
    const std::uint64_t count = to_uint64(integer).value_or(0);
    if (count < 1 || count > 255) {
        reject_field(ErrorKind::value, name, "the option `{}` is {}: a thread can use 1 to 255 registers.",
                     name, std::string(py::str(integer)));
    }
    options.max_registers = static_cast<int>(count);
}

/// The value in Python: tuples for lists, and None if it is not set.
template <auto option>
py::object get(const CompileOptions& options) {
    return py::cast(options.*option);
}
template <std::vector<std::string> CompileOptions::*option>
py::object get_items(const CompileOptions& options) {
    return py::tuple(py::cast(options.*option));
}
py::object text_or_none(const std::string& text) {
    return text.empty() ? py::object(py::none()) : py::object(to_str(text));
}

/// An option of CompileOptions in Python: a keyword, an attribute, the NVRTC flags that set it in a list, and a line of
/// the documentation.
struct Option {
    const char* name;
    const char* flags;  ///< separated by blanks; flags of a switch take no value
    bool is_switch;
    const char* documentation;
    void (*set)(CompileOptions&, const char* name, py::handle);
    py::object (*get)(const CompileOptions&);
};

constexpr Option compile_options[] = {
    {"std", "-std --std", false,
     "'c++17', 'c++20', or from NVRTC 13.3 on 'c++23'; 'c++11' and 'c++14' are compiled as 'c++17'",
     [](CompileOptions& options, const char* name, py::handle value) {
         options.std = to_text(name, "a str like 'c++17'", value);
     },
     &get<&CompileOptions::std>},
    {"defines", "-D --define-macro", false,
     "dict of macro names to str, int, bool or None; None defines the bare name, which is 1",
     [](CompileOptions& options, const char* name, py::handle value) {
         set_pairs(options.defines, name, "a dict of macro names to str, int, bool or None", value,
                   [](const char*, const char*, py::handle macro) { return to_macro(macro); });
     },
     [](const CompileOptions& options) -> py::object {
         py::dict defines;
         for (const auto& [name, value] : options.defines) defines[to_str(name)] = text_or_none(value);
         return defines;
     }},
    {"include_paths", "-I --include-path", false,
     "list of directories for #include; relative ones are made absolute now, `~` is not expanded",
     [](CompileOptions& options, const char* name, py::handle value) {
         set_items(options.include_paths, name, "a list of paths", value, &to_path);
     },
     &get_items<&CompileOptions::include_paths>},
    {"headers", "", false, "dict of names to texts, found by #include \"name\" as if they were files",
     [](CompileOptions& options, const char* name, py::handle value) {
         set_pairs(options.headers, name, "a dict of header names to their texts", value, &to_text);
     },
     [](const CompileOptions& options) -> py::object {
         py::dict headers;
         for (const auto& [name, text] : options.headers) headers[to_str(name)] = text;
         return headers;
     }},
    {"lineinfo", "-lineinfo --generate-line-info", true,
     "bool, source lines in the image, for profilers; always on for the emulated device",
     &set_flag<&CompileOptions::lineinfo>, &get<&CompileOptions::lineinfo>},
    {"debug", "-G --device-debug", true,
     "bool, device code for debuggers (-G), and views that check every index (define BASCULE_CHECK_BOUNDS as "
     "0 or 1 to choose the\n    checks alone)",
     &set_flag<&CompileOptions::debug>, &get<&CompileOptions::debug>},
    {"fast_math", "-use_fast_math --use_fast_math", true,
     "bool, faster and less accurate math functions (-use_fast_math)", &set_flag<&CompileOptions::fast_math>,
     &get<&CompileOptions::fast_math>},
    {"max_registers", "-maxrregcount --maxrregcount", false,
     "int, the most registers per thread, 1 to 255; what does not fit is spilled to local memory",
     &set_max_registers, &get<&CompileOptions::max_registers>},
    {"arch", "-arch --gpu-architecture", false,
     "'sm_90', 'sm_90a' or 'compute_80'; None means the current device's",
     [](CompileOptions& options, const char* name, py::handle value) {
         static constexpr const char* expected = "a str like 'sm_90' or 'compute_80', or None";
         if (!value.is_none()) options.arch = parse_arch(to_text(name, expected, value));
     },
     [](const CompileOptions& options) {
         return text_or_none(options.arch ? to_string(*options.arch) : std::string());
     }},
    {"pch", "-pch --pch", true,
     R"(bool, whether large headers are precompiled for the process's other compiles: True from the first compile on,
    which takes half as long again, False never; None, the default, from the second compile on that has the same headers.
    Needs NVRTC 12.8, and up to 1 GiB in TMPDIR, /dev/shm or /tmp; the image is the same)",
     [](CompileOptions& options, const char* name, py::handle value) {
         if (!value.is_none()) options.pch = to_flag(name, value);
     },
     &get<&CompileOptions::pch>},
    {"keep_sources", "", false,
     R"(path of a directory; the text is written to a file there, and the source lines of the image name that file, so that
    cuda-gdb and Nsight Compute show it. Turns lineinfo on. None takes BASCULE_KEEP_SOURCES, if that is set)",
     [](CompileOptions& options, const char* name, py::handle value) {
         if (!value.is_none()) options.keep_sources = to_path(name, "a path of a directory", value);
     },
     [](const CompileOptions& options) { return text_or_none(options.keep_sources); }},
    {"extra", "", false, "list of str, further NVRTC options, one per item",
     [](CompileOptions& options, const char* name, py::handle value) {
         set_items(options.extra, name, "a list of str, one NVRTC option per item", value, &to_text);
     },
     &get_items<&CompileOptions::extra>},
};

[[noreturn]] void fail_unknown_option(const std::string& name) {
    std::vector<std::string> names;
    for (const Option& option : compile_options) names.emplace_back(option.name);
    const std::string nearest = nearest_name(name, names);
    const std::string hint = nearest.empty() ? "" : fmt::format(" Did you mean '{}'?", nearest);
    reject_field(ErrorKind::type, name, "CompileOptions has no option '{}'.{} The options are {}.", name,
                 hint, fmt::join(names, ", "));
}

CompileOptions make_compile_options(const py::args& positional, const py::kwargs& given) {
    if (!positional.empty()) {
        reject(ErrorKind::type,
               "CompileOptions takes keyword arguments only: CompileOptions(std=\"c++20\").");
    }
    CompileOptions options;
    for (auto [key, value] : given) {
        const auto name = key.cast<std::string>();
        const Option* known = std::ranges::find(compile_options, name, &Option::name);
        if (known == std::end(compile_options)) fail_unknown_option(name);
        known->set(options, known->name, value);
    }
    to_arguments(options);  // refuses now what the first compilation would refuse
    return options;
}

/// Changed options by name.
py::dict changed_options(const CompileOptions& options) {
    const CompileOptions defaults;
    py::dict changed;
    for (const Option& option : compile_options) {
        const py::object value = option.get(options);
        if (value.equal(option.get(defaults))) continue;
        changed[option.name] = py::isinstance<py::tuple>(value) ? py::object(py::list(value)) : value;
    }
    return changed;
}

/// Returns a Python expression.
std::string repr_of(const CompileOptions& options) {
    std::vector<std::string> given;
    for (const auto& [name, value] : changed_options(options)) {
        given.push_back(fmt::format("{}={}", std::string(py::str(name)), std::string(py::repr(value))));
    }
    return fmt::format("bascule.CompileOptions({})", fmt::join(given, ", "));
}

/// Maps NVRTC's flags to (option, whether it is a switch).
py::dict flags_of_options() {
    py::dict flags;
    for (const Option& option : compile_options) {
        for (const py::handle flag : py::str(option.flags).attr("split")()) {
            flags[flag] = py::make_tuple(option.name, option.is_switch);
        }
    }
    return flags;
}

void bind_compile_options(py::module_& module) {
    std::string documentation =
        "Options of a compile. Immutable; compares and hashes by value. All options are keywords and "
        "optional.\n\n";
    for (const Option& option : compile_options) {
        documentation += fmt::format("{} : {}\n", option.name, option.documentation);
    }
    documentation += "\n>>> bascule.CompileOptions(std=\"c++20\", defines={\"TILE\": 32}, fast_math=True)";
    py::class_<CompileOptions> type(module, "CompileOptions", documentation.c_str());
    for (const Option& option : compile_options) type.def_property_readonly(option.name, option.get);
    type.def(py::init(&make_compile_options))
        .def(py::self == py::self)
        .def("__hash__", [](const CompileOptions& options) { return py::hash(py::str(repr_of(options))); })
        .def(py::pickle(
            &changed_options,
            [](const py::dict& changed) { return make_compile_options(py::args(), py::kwargs(changed)); }))
        .def("__repr__", [](const CompileOptions& options) { return repr_of(options); });
    module.def("_flags_of_options", &flags_of_options);
}

// --- Diagnostic --------------------------------------------------------------------------------------------

std::string repr_of_diagnostic(const py::object& self) {
    std::vector<std::string> parts;
    for (const char* const name : {"severity", "number", "file", "line", "column", "message"}) {
        const py::object value = self.attr(name);
        if (py::bool_(value)) parts.push_back(fmt::format("{}={}", name, std::string(py::repr(value))));
    }
    if (const auto notes = py::len(self.attr("notes"))) parts.push_back(fmt::format("{} notes", notes));
    return fmt::format("<bascule.Diagnostic {}>", fmt::join(parts, ", "));
}

py::object number_or_none(int number) {
    return number > 0 ? py::object(py::int_(number)) : py::object(py::none());
}

void bind_diagnostic(py::module_& module) {
    py::class_<Diagnostic>(module, "Diagnostic", "A message of the compiler about one place in a text.")
        .def_property_readonly(
            "severity", [](const Diagnostic& d) { return to_string(d.severity); },
            "'error', 'warning', 'remark' or 'note'.")
        .def_readonly("number", &Diagnostic::number,
                      "NVRTC's number of the message, such as '177-D'; '' if it has none.")
        .def_readonly("file", &Diagnostic::file,
                      "The user's file, or a header; '' if the message has no place.")
        .def_property_readonly(
            "line", [](const Diagnostic& d) { return number_or_none(d.line); },
            "Line in the file, from 1, or None.")
        .def_property_readonly(
            "column", [](const Diagnostic& d) { return number_or_none(d.column); },
            "Column in characters of the source line, from 1, or None.")
        .def_readonly("message", &Diagnostic::message, "The text of the message.")
        .def_readonly("notes", &Diagnostic::notes,
                      "Diagnostics that belong to this one: candidates, instantiations.")
        .def_readonly("source_line", &Diagnostic::source_line, "The text of the line; '' if unknown.")
        .def(py::self == py::self)
        .def(py::pickle(
            [](const Diagnostic& d) {
                return py::make_tuple(static_cast<int>(d.severity), d.number, d.file, d.line, d.column,
                                      d.message, d.notes, d.source_line);
            },
            [](const py::tuple& state) {
                Diagnostic d;
                int severity = 0;
                std::tie(severity, d.number, d.file, d.line, d.column, d.message, d.notes, d.source_line) =
                    state.cast<std::tuple<int, std::string, std::string, int, int, std::string,
                                          std::vector<Diagnostic>, std::string>>();
                d.severity = static_cast<Diagnostic::Severity>(severity);
                return d;
            }))
        .def("__repr__", &repr_of_diagnostic);
}

void bind_cache_statistics(py::module_& module) {
    py::class_<CacheStatistics>(module, "CacheStatistics", "Counts since the start of the process.")
        .def_readonly("compiled", &CacheStatistics::compiled, "Programs that were compiled.")
        .def_readonly("from_memory", &CacheStatistics::from_memory, "Programs found in memory.")
        .def_readonly("from_disk", &CacheStatistics::from_disk, "Programs found on disk.")
        .def_readonly("nvrtc_calls", &CacheStatistics::nvrtc_calls, "Calls of nvrtcCompileProgram.")
        .def("__repr__", &repr_of_properties);
}

}  // namespace

void bind_values(py::module_& module) {
    bind_diagnostic(module);
    bind_compile_options(module);
    bind_cache_statistics(module);
}

}  // namespace bascule::python
