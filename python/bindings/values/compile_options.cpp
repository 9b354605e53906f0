// What a compile takes and reports: bascule.CompileOptions, bascule.Diagnostic and bascule.CacheStatistics. Everything about one option
// comes from its row in the table of options.
#include <algorithm>
#include <climits>
#include <tuple>
#include <variant>

#include <fmt/ranges.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/wording.hpp>
#include <bascule/jit/lookup/cache.hpp>
#include <bascule/jit/options/compile_options.hpp>
#include <bascule/jit/options/option_table.hpp>

#include "parts.hpp"
#include "support/attributes.hpp"
#include "support/integers.hpp"
#include "support/without_gil.hpp"

namespace bascule::python {
namespace {

using Texts = std::vector<std::string>;
using Pairs = std::vector<std::pair<std::string, std::string>>;
using Content = CompileOption::Content;

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

// --- From Python

/// The text of one value. A macro may be an integer, but no float: 1.5 is a double, 1.5f a float.
std::string text_of(const CompileOption& option, py::handle value) {
    if (option.content == Content::path) return to_path(option.name, option.expected, value);
    if (option.content == Content::text) return to_text(option.name, option.expected, value);
    if (value.is_none()) return {};
    if (PyBool_Check(value.ptr())) return value.cast<bool>() ? "1" : "0";
    if (PyIndex_Check(value.ptr()) != 0) return py::str(to_int(value));
    return to_text(option.name, "a dict of names to str, int, bool or None; write a float as a str, \"1.5f\"",
                   value);
}

void set(bool& to, const CompileOption& option, py::handle value) { to = to_flag(option.name, value); }
void set(std::optional<bool>& to, const CompileOption& option, py::handle value) {
    to = to_flag(option.name, value);
}
void set(std::string& to, const CompileOption& option, py::handle value) { to = text_of(option, value); }
void set(std::optional<Arch>& to, const CompileOption& option, py::handle value) {
    to = parse_arch(text_of(option, value));
}
void set(std::optional<int>& to, const CompileOption& option, py::handle value) {
    if (!is_integer(value)) fail_option(option.name, option.expected, value);
    const py::object integer = to_int(value);
    const std::uint64_t number = to_uint64(integer).value_or(INT_MAX);
    if (number >= INT_MAX) fail_range(option, std::string(py::str(integer)));
    to = static_cast<int>(number);
}
void set(Texts& to, const CompileOption& option, py::handle value) {
    if (!PyList_Check(value.ptr()) && !PyTuple_Check(value.ptr()))
        fail_option(option.name, option.expected, value);
    for (py::handle item : value) to.push_back(text_of(option, item));
}
void set(Pairs& to, const CompileOption& option, py::handle value) {
    if (!PyDict_Check(value.ptr())) fail_option(option.name, option.expected, value);
    for (auto [key, entry] : copy_of(value))
        to.emplace_back(to_text(option.name, option.expected, key), text_of(option, entry));
}

// --- To Python: tuples for lists, and None for what is not set

py::object text_or_none(const std::string& text) {
    return text.empty() ? py::object(py::none()) : py::object(to_str(text));
}

template <class Value>
py::object get(const Value& value, const CompileOption&) {
    return py::cast(value);
}
py::object get(const std::string& value, const CompileOption&) { return text_or_none(value); }
py::object get(const Texts& value, const CompileOption&) { return py::tuple(py::cast(value)); }
py::object get(const std::optional<Arch>& value, const CompileOption&) {
    return text_or_none(value ? to_string(*value) : std::string());
}
py::object get(const Pairs& value, const CompileOption& option) {
    py::dict entries;
    for (const auto& [name, text] : value)
        entries[to_str(name)] = option.content == Content::macro ? text_or_none(text) : to_str(text);
    return entries;
}

py::object value_of(const CompileOption& option, const CompileOptions& options) {
    return std::visit([&](auto member) { return get(options.*member, option); }, option.member);
}

// --- The class

[[noreturn]] void fail_unknown_option(const std::string& name) {
    std::vector<std::string> names;
    for (const CompileOption& option : compile_option_table()) names.emplace_back(option.name);
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
    for (const auto& entry : given) {
        const py::handle value = entry.second;
        const auto name = entry.first.cast<std::string>();
        const auto table = compile_option_table();
        const auto known = std::ranges::find(table, name, &CompileOption::name);
        if (known == table.end()) fail_unknown_option(name);
        if (value.is_none() && value_of(*known, options).is_none()) continue;
        std::visit([&](auto member) { set(options.*member, *known, value); }, known->member);
    }
    to_arguments(options);  // refuses now what the first compilation would refuse
    return options;
}

/// Returns the options that differ from their defaults, by name.
py::dict changed_options(const CompileOptions& options) {
    const CompileOptions defaults;
    py::dict changed;
    for (const CompileOption& option : compile_option_table()) {
        const py::object value = value_of(option, options);
        if (value.equal(value_of(option, defaults))) continue;
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

/// Maps NVRTC's flags to (option, the kind of its value).
py::dict flags_of_options() {
    static constexpr const char* kinds[] = {"switch", "switch", "number", "text", "text", "list", "dict"};
    static_assert(std::size(kinds) == std::variant_size_v<CompileOption::Member>);
    py::dict flags;
    for (const CompileOption& option : compile_option_table()) {
        for (const py::handle flag : py::str(option.flags).attr("split")())
            flags[flag] = py::make_tuple(option.name, kinds[option.member.index()]);
    }
    return flags;
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
            }));
}

void bind_cache_statistics(py::module_& module) {
    py::class_<CacheStatistics>(module, "CacheStatistics", "Counts since the start of the process.")
        .def_readonly("compiled", &CacheStatistics::compiled, "Programs that were compiled.")
        .def_readonly("from_memory", &CacheStatistics::from_memory, "Programs found in memory.")
        .def_readonly("from_disk", &CacheStatistics::from_disk, "Programs found on disk.")
        .def_readonly("nvrtc_calls", &CacheStatistics::nvrtc_calls, "Calls of nvrtcCompileProgram.");
}

void bind_compile_options(py::module_& module) {
    std::string documentation =
        "Options of a compile. Immutable; compares and hashes by value. All options are keywords and "
        "optional.\n\n";
    for (const CompileOption& option : compile_option_table()) {
        documentation += fmt::format("{} : {}\n", option.name, option.documentation);
    }
    documentation += "\n>>> bascule.CompileOptions(std=\"c++20\", defines={\"TILE\": 32}, fast_math=True)";
    py::class_<CompileOptions> type(module, "CompileOptions", documentation.c_str());
    for (const CompileOption& option : compile_option_table()) {
        type.def_property_readonly(
            option.name, [&option](const CompileOptions& options) { return value_of(option, options); });
    }
    type.def(py::init(&make_compile_options))
        .def(py::self == py::self)
        .def("__hash__", [](const CompileOptions& options) { return py::hash(py::str(repr_of(options))); })
        .def(py::pickle(
            &changed_options,
            [](const py::dict& changed) { return make_compile_options(py::args(), py::kwargs(changed)); }))
        .def("__repr__", [](const CompileOptions& options) { return repr_of(options); });
    module.def("_flags_of_options", &flags_of_options);
}

}  // namespace

void bind_values(py::module_& module) {
    bind_diagnostic(module);
    bind_compile_options(module);
    bind_cache_statistics(module);
}

}  // namespace bascule::python
