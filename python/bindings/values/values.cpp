#include "values/values.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pybind11/stl.h>

#include <bascule/interface/errors/diagnostic.hpp>
#include <bascule/interface/errors/did_you_mean.hpp>
#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/cache/cache.hpp>
#include <bascule/jit/text/source.hpp>

#include "parts.hpp"
#include "support/without_gil.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace bascule::python {
namespace {

using ErrorKind = ArgumentError::Kind;

[[noreturn]] void fail_extents(const char* what, py::handle got) {
    throw ArgumentError(ErrorKind::type,
                        fmt::format("`{}` must be an integer or a tuple of up to three, got {}.", what,
                                    std::string(py::repr(got))),
                        {.field = what});
}

std::uint64_t to_extent(const char* what, py::handle object) {
    if (PyBool_Check(object.ptr()) || PyIndex_Check(object.ptr()) == 0) fail_extents(what, object);
    const auto integer = py::reinterpret_steal<py::object>(PyNumber_Index(object.ptr()));
    if (!integer) throw py::error_already_set();
    const unsigned long long value = PyLong_AsUnsignedLongLong(integer.ptr());
    if (PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        throw ArgumentError(ErrorKind::value,
                            fmt::format("`{}` cannot be {}: it must be from 0 to 2**64 - 1.", what,
                                        std::string(py::str(integer))),
                            {.field = what});
    }
    return value;
}

std::uint32_t to_uint32(const char* what, std::uint64_t value) {
    if (value > UINT32_MAX) {
        throw ArgumentError(ErrorKind::value,
                            fmt::format("`{}` is {}, which is above the limit of every device.", what, value),
                            {.field = what});
    }
    return static_cast<std::uint32_t>(value);
}

Dim3 to_dim3(const char* what, py::handle object) {
    const std::vector<std::uint64_t> extents = to_extents(what, object);
    Dim3 result;
    result.x = to_uint32(what, extents[0]);
    if (extents.size() > 1) result.y = to_uint32(what, extents[1]);
    if (extents.size() > 2) result.z = to_uint32(what, extents[2]);
    return result;
}

py::tuple to_tuple(const Dim3& dimensions) {
    return py::make_tuple(dimensions.x, dimensions.y, dimensions.z);
}

/// A Python expression; attributes that have their default are omitted.
std::string repr_of(const LaunchConfig& c) {
    std::string text = fmt::format(
        "bascule.LaunchConfig(grid=({}, {}, {}), block=({}, {}, {}), shared_bytes={}, cooperative={}",
        c.grid.x, c.grid.y, c.grid.z, c.block.x, c.block.y, c.block.z, c.shared_bytes,
        c.cooperative ? "True" : "False");
    if (c.cluster.count() != 1)
        text += fmt::format(", cluster=({}, {}, {})", c.cluster.x, c.cluster.y, c.cluster.z);
    if (c.programmatic) text += ", programmatic=True";
    if (c.priority) text += fmt::format(", priority={}", *c.priority);
    if (c.shared_carveout) text += fmt::format(", shared_carveout={}", *c.shared_carveout);
    return text + ")";
}

void bind_launch_config(py::module_& module) {
    py::class_<LaunchConfig>(
        module, "LaunchConfig",
        R"(The geometry and attributes of a launch. Immutable; compares and hashes by value.

grid : int or tuple of up to three ints, blocks per grid
block : int or tuple of up to three ints, threads per block
shared_bytes : int, bytes of dynamic shared memory per block
cooperative : bool, all blocks are resident at once, as grid synchronisation needs
cluster : int or tuple of up to three ints, blocks per cluster; needs compute capability 9.0
programmatic : bool, the launch may start before the previous launch on the stream has ended; needs compute capability 9.0
priority : int, lower is more urgent; None means the stream's priority
shared_carveout : int, percent of the on-chip memory to prefer as shared memory; None leaves the choice to the driver

>>> bascule.LaunchConfig(8, 128, cooperative=True))")
        .def(py::init([](py::handle grid, py::handle block, py::handle shared_bytes, bool cooperative,
                         py::handle cluster, bool programmatic, std::optional<int> priority,
                         std::optional<int> shared_carveout) {
                 return to_config(grid, block, shared_bytes, cooperative, cluster, programmatic, priority,
                                  shared_carveout);
             }),
             "grid"_a, "block"_a, py::kw_only(), "shared_bytes"_a = 0, "cooperative"_a = false,
             "cluster"_a = py::none(), "programmatic"_a = false, "priority"_a = py::none(),
             "shared_carveout"_a = py::none())
        .def_property_readonly("grid", [](const LaunchConfig& c) { return to_tuple(c.grid); })
        .def_property_readonly("block", [](const LaunchConfig& c) { return to_tuple(c.block); })
        .def_readonly("shared_bytes", &LaunchConfig::shared_bytes)
        .def_readonly("cooperative", &LaunchConfig::cooperative)
        .def_property_readonly("cluster", [](const LaunchConfig& c) { return to_tuple(c.cluster); })
        .def_readonly("programmatic", &LaunchConfig::programmatic)
        .def_readonly("priority", &LaunchConfig::priority)
        .def_readonly("shared_carveout", &LaunchConfig::shared_carveout)
        .def(
            "__eq__", [](const LaunchConfig& a, const LaunchConfig& b) { return a == b; }, py::is_operator())
        .def("__hash__", [](const LaunchConfig& c) { return py::hash(py::str(repr_of(c))); })
        .def(py::pickle(
            [](const LaunchConfig& c) {
                return py::make_tuple(to_tuple(c.grid), to_tuple(c.block), c.shared_bytes, c.cooperative,
                                      to_tuple(c.cluster), c.programmatic, c.priority, c.shared_carveout);
            },
            [](const py::tuple& state) {
                return to_config(state[0], state[1], state[2], state[3].cast<bool>(), state[4],
                                 state[5].cast<bool>(), state[6].cast<std::optional<int>>(),
                                 state[7].cast<std::optional<int>>());
            }))
        .def("__repr__", [](const LaunchConfig& c) { return repr_of(c); });
}

// --- CompileOptions ----------------------------------------------------------------------------------------

[[noreturn]] void fail_option(const char* name, const std::string& expected, py::handle got) {
    const auto text = std::string(py::repr(got));
    throw ArgumentError(ErrorKind::type,
                        fmt::format("the option `{}` must be {}, got {}.", name, expected, text),
                        {.field = name, .expected = expected, .got = text});
}

std::string to_text(const char* name, const char* expected, py::handle got) {
    if (!PyUnicode_Check(got.ptr())) fail_option(name, expected, got);
    return got.cast<std::string>();
}

bool to_flag(const char* name, py::handle got) {
    if (!PyBool_Check(got.ptr())) fail_option(name, "True or False", got);
    return got.cast<bool>();
}

/// The value as the preprocessor reads it. A float would be ambiguous: 1.5 is a double, 1.5f is not.
std::string to_macro(py::handle value) {
    if (value.is_none()) return {};
    if (PyBool_Check(value.ptr())) return value.cast<bool>() ? "1" : "0";
    if (PyIndex_Check(value.ptr()) != 0) {
        const auto integer = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
        if (!integer) throw py::error_already_set();
        return py::str(integer);
    }
    return to_text("defines", "a dict of names to str, int, bool or None; write a float as a str, \"1.5f\"",
                   value);
}

void set_std(CompileOptions& options, py::handle value) {
    options.std = to_text("std", "a str like 'c++17'", value);
}

void set_defines(CompileOptions& options, py::handle value) {
    static constexpr const char* expected = "a dict of macro names to str, int, bool or None";
    if (!PyDict_Check(value.ptr())) fail_option("defines", expected, value);
    for (auto [name, macro] : copy_of(value)) {
        options.defines.emplace_back(to_text("defines", expected, name), to_macro(macro));
    }
}

std::string to_path(const char* option, const char* expected, py::handle value) {
    if (!PyUnicode_Check(value.ptr()) && !PyBytes_Check(value.ptr()) && !py::hasattr(value, "__fspath__")) {
        fail_option(option, expected, value);
    }
    const py::module_ os = py::module_::import("os");
    auto path = to_text(option, expected, os.attr("fsdecode")(value));
    if (path.starts_with("~") && !os.attr("path").attr("isdir")(path).cast<bool>()) {
        throw ArgumentError(ErrorKind::value,
                            fmt::format("the option `{}` has \"{}\": `~` is not expanded. Use "
                                        "os.path.expanduser(\"{}\").",
                                        option, path, path),
                            {.field = option, .got = path});
    }
    return path.empty() ? path : os.attr("path").attr("abspath")(path).cast<std::string>();
}

void set_include_paths(CompileOptions& options, py::handle value) {
    static constexpr const char* expected = "a list of paths";
    if (!PyList_Check(value.ptr()) && !PyTuple_Check(value.ptr())) {
        fail_option("include_paths", expected, value);
    }
    for (py::handle path : value) options.include_paths.push_back(to_path("include_paths", expected, path));
}

void set_headers(CompileOptions& options, py::handle value) {
    static constexpr const char* expected = "a dict of header names to their texts";
    if (!PyDict_Check(value.ptr())) fail_option("headers", expected, value);
    for (auto [name, text] : copy_of(value)) {
        options.headers.emplace_back(to_text("headers", expected, name), to_text("headers", expected, text));
    }
}

void set_lineinfo(CompileOptions& options, py::handle value) {
    options.lineinfo = to_flag("lineinfo", value);
}
void set_debug(CompileOptions& options, py::handle value) { options.debug = to_flag("debug", value); }
void set_fast_math(CompileOptions& options, py::handle value) {
    options.fast_math = to_flag("fast_math", value);
}

void set_pch(CompileOptions& options, py::handle value) {
    if (!value.is_none()) options.pch = to_flag("pch", value);
}

void set_max_registers(CompileOptions& options, py::handle value) {
    if (value.is_none()) return;
    static constexpr const char* expected = "an int or None";
    if (PyBool_Check(value.ptr()) || PyIndex_Check(value.ptr()) == 0)
        fail_option("max_registers", expected, value);
    const auto integer = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
    if (!integer) throw py::error_already_set();
    int overflow = 0;
    const long long count = PyLong_AsLongLongAndOverflow(integer.ptr(), &overflow);
    if (overflow != 0 || count < 1 || count > 255) {
        throw ArgumentError(
            ErrorKind::value,
            fmt::format("the option `max_registers` is {}: a thread can use 1 to 255 registers.",
                        std::string(py::str(integer))),
            {.field = "max_registers"});
    }
    options.max_registers = static_cast<int>(count);
}

void set_arch(CompileOptions& options, py::handle value) {
    if (!value.is_none())
        options.arch = parse_arch(to_text("arch", "a str like 'sm_90' or 'compute_80', or None", value));
}

void set_extra(CompileOptions& options, py::handle value) {
    static constexpr const char* expected = "a list of str, one NVRTC option per item";
    if (!PyList_Check(value.ptr()) && !PyTuple_Check(value.ptr())) fail_option("extra", expected, value);
    for (py::handle option : value) options.extra.push_back(to_text("extra", expected, option));
}

void set_keep_sources(CompileOptions& options, py::handle value) {
    if (value.is_none()) return;
    options.keep_sources = to_path("keep_sources", "a path of a directory", value);
}

struct Option {
    const char* name;
    void (*set)(CompileOptions&, py::handle);
};

constexpr std::array compile_options = {
    Option{"std", &set_std},
    Option{"defines", &set_defines},
    Option{"include_paths", &set_include_paths},
    Option{"headers", &set_headers},
    Option{"lineinfo", &set_lineinfo},
    Option{"debug", &set_debug},
    Option{"fast_math", &set_fast_math},
    Option{"max_registers", &set_max_registers},
    Option{"arch", &set_arch},
    Option{"pch", &set_pch},
    Option{"keep_sources", &set_keep_sources},
    Option{"extra", &set_extra},
};

[[noreturn]] void fail_unknown_option(const std::string& name) {
    std::vector<std::string> names;
    names.reserve(std::size(compile_options));
    for (const Option& option : compile_options) names.emplace_back(option.name);
    const std::string nearest = nearest_name(name, names);
    const std::string hint = nearest.empty() ? "" : fmt::format(" Did you mean '{}'?", nearest);
    throw ArgumentError(ErrorKind::type,
                        fmt::format("CompileOptions has no option '{}'.{} The options are {}.", name, hint,
                                    fmt::join(names, ", ")),
                        {.field = name});
}

CompileOptions make_compile_options(const py::args& positional, const py::kwargs& given) {
    if (!positional.empty()) {
        throw ArgumentError(ErrorKind::type,
                            "CompileOptions takes keyword arguments only: CompileOptions(std=\"c++20\").");
    }
    CompileOptions options;
    for (auto [key, value] : given) {
        const auto name = key.cast<std::string>();
        const auto known = std::find_if(compile_options.begin(), compile_options.end(),
                                        [&](const Option& option) { return name == option.name; });
        if (known == compile_options.end()) fail_unknown_option(name);
        known->set(options, value);
    }
    to_arguments(options);  // refuses now what would be refused at the first compile
    return options;
}

py::dict defines_of(const CompileOptions& options) {
    py::dict defines;
    for (const auto& [name, value] : options.defines) {
        defines[to_str(name)] = value.empty() ? py::object(py::none()) : py::object(to_str(value));
    }
    return defines;
}

py::dict headers_of(const CompileOptions& options) {
    py::dict headers;
    for (const auto& [name, text] : options.headers) headers[to_str(name)] = text;
    return headers;
}

py::object arch_of(const CompileOptions& options) {
    return options.arch ? py::object(py::str(to_string(*options.arch))) : py::object(py::none());
}

/// By name; options that have their default are omitted.
py::dict changed_options(const CompileOptions& options) {
    const CompileOptions defaults;
    py::dict given;
    const auto add = [&](const char* name, bool changed, const py::object& value) {
        if (changed) given[name] = value;
    };
    add("std", options.std != defaults.std, to_str(options.std));
    add("defines", !options.defines.empty(), defines_of(options));
    add("include_paths", !options.include_paths.empty(), py::cast(options.include_paths));
    add("headers", !options.headers.empty(), headers_of(options));
    add("lineinfo", options.lineinfo, py::bool_(options.lineinfo));
    add("debug", options.debug, py::bool_(options.debug));
    add("fast_math", options.fast_math, py::bool_(options.fast_math));
    add("max_registers", options.max_registers.has_value(), py::cast(options.max_registers));
    add("arch", options.arch.has_value(), arch_of(options));
    add("pch", options.pch.has_value(), py::cast(options.pch));
    add("keep_sources", !options.keep_sources.empty(), to_str(options.keep_sources));
    add("extra", !options.extra.empty(), py::cast(options.extra));
    return given;
}

/// A Python expression.
std::string repr_of(const CompileOptions& options) {
    std::vector<std::string> given;
    for (const auto& [name, value] : changed_options(options)) {
        given.push_back(fmt::format("{}={}", std::string(py::str(name)), std::string(py::repr(value))));
    }
    return fmt::format("bascule.CompileOptions({})", fmt::join(given, ", "));
}

void bind_compile_options(py::module_& module) {
    py::class_<CompileOptions>(
        module, "CompileOptions",
        R"(Options of a compile. Immutable; compares and hashes by value. All options are keywords and optional.

std : 'c++17', 'c++20', or from NVRTC 13.3 on 'c++23'
defines : dict of macro names to str, int, bool or None; None defines the bare name, which is 1
include_paths : list of directories for #include; relative ones are made absolute now, `~` is not expanded
headers : dict of names to texts, found by #include "name" as if they were files
lineinfo : bool, source lines in the image, for profilers; always on for the emulated device
debug : bool, device code for debuggers (-G), and views that check every index (define BASCULE_CHECK_BOUNDS as 0 or 1 to choose the
    checks alone)
fast_math : bool, faster and less accurate math functions (-use_fast_math)
max_registers : int, the most registers per thread, 1 to 255; what does not fit is spilled to local memory
arch : 'sm_90', 'sm_90a' or 'compute_80'; None means the current device's
pch : bool, whether large headers are precompiled for the process's other compiles: True from the first compile on,
    which takes half as long again, False never; None, the default, from the second compile on that has the same headers.
    Needs NVRTC 12.8, and up to 1 GiB in TMPDIR, /dev/shm or /tmp; the image is the same
keep_sources : path of a directory; the text is written to a file there, and the source lines of the image name that file, so that
    cuda-gdb and Nsight Compute show it. Turns lineinfo on. None takes BASCULE_KEEP_SOURCES, if that is set
extra : list of str, further NVRTC options, one per item

>>> bascule.CompileOptions(std="c++20", defines={"TILE": 32}, fast_math=True))")
        .def(py::init(&make_compile_options))
        .def_readonly("std", &CompileOptions::std)
        .def_property_readonly("defines", &defines_of)
        .def_property_readonly("include_paths",
                               [](const CompileOptions& o) { return py::tuple(py::cast(o.include_paths)); })
        .def_property_readonly("headers", &headers_of)
        .def_readonly("lineinfo", &CompileOptions::lineinfo)
        .def_readonly("debug", &CompileOptions::debug)
        .def_readonly("fast_math", &CompileOptions::fast_math)
        .def_readonly("max_registers", &CompileOptions::max_registers)
        .def_property_readonly("arch", &arch_of)
        .def_readonly("pch", &CompileOptions::pch)
        .def_property_readonly("keep_sources",
                               [](const CompileOptions& o) {
                                   return o.keep_sources.empty() ? py::object(py::none())
                                                                 : py::object(to_str(o.keep_sources));
                               })
        .def_property_readonly("extra", [](const CompileOptions& o) { return py::tuple(py::cast(o.extra)); })
        .def(
            "__eq__", [](const CompileOptions& a, const CompileOptions& b) { return a == b; },
            py::is_operator())
        .def("__hash__", [](const CompileOptions& options) { return py::hash(py::str(repr_of(options))); })
        .def(py::pickle(
            &changed_options,
            [](const py::dict& changed) { return make_compile_options(py::args(), py::kwargs(changed)); }))
        .def("__repr__", [](const CompileOptions& options) { return repr_of(options); });
}

// --- Diagnostic --------------------------------------------------------------------------------------------

std::string repr_of(const Diagnostic& diagnostic) {
    std::string text = fmt::format("severity='{}'", to_string(diagnostic.severity));
    const auto add = [&](const char* name, bool known, const py::object& value) {
        if (known) text += fmt::format(", {}={}", name, std::string(py::repr(value)));
    };
    add("number", !diagnostic.number.empty(), to_str(diagnostic.number));
    add("file", !diagnostic.file.empty(), to_str(diagnostic.file));
    add("line", diagnostic.line > 0, py::int_(diagnostic.line));
    add("column", diagnostic.column > 0, py::int_(diagnostic.column));
    add("message", true, to_str(diagnostic.message));
    if (!diagnostic.notes.empty()) text += fmt::format(", {} notes", diagnostic.notes.size());
    return fmt::format("<bascule.Diagnostic {}>", text);
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
        .def(
            "__eq__", [](const Diagnostic& a, const Diagnostic& b) { return a == b; }, py::is_operator())
        .def(py::pickle(
            [](const Diagnostic& d) {
                return py::make_tuple(static_cast<int>(d.severity), d.number, d.file, d.line, d.column,
                                      d.message, d.notes, d.source_line);
            },
            [](const py::tuple& state) {
                return Diagnostic{.severity = static_cast<Diagnostic::Severity>(state[0].cast<int>()),
                                  .number = state[1].cast<std::string>(),
                                  .file = state[2].cast<std::string>(),
                                  .line = state[3].cast<int>(),
                                  .column = state[4].cast<int>(),
                                  .message = state[5].cast<std::string>(),
                                  .notes = state[6].cast<std::vector<Diagnostic>>(),
                                  .source_line = state[7].cast<std::string>()};
            }))
        .def("__repr__", [](const Diagnostic& d) { return repr_of(d); });
}

void bind_cache_statistics(py::module_& module) {
    py::class_<CacheStatistics>(module, "CacheStatistics", "Counts since the start of the process.")
        .def_readonly("compiled", &CacheStatistics::compiled, "Programs that were compiled.")
        .def_readonly("from_memory", &CacheStatistics::from_memory, "Programs found in memory.")
        .def_readonly("from_disk", &CacheStatistics::from_disk, "Programs found on disk.")
        .def_readonly("nvrtc_calls", &CacheStatistics::nvrtc_calls, "Calls of nvrtcCompileProgram.")
        .def("__repr__", [](const CacheStatistics& s) {
            return fmt::format("CacheStatistics(compiled={}, from_memory={}, from_disk={}, nvrtc_calls={})",
                               s.compiled, s.from_memory, s.from_disk, s.nvrtc_calls);
        });
}

}  // namespace

std::vector<std::uint64_t> to_extents(const char* what, py::handle object) {
    if (!PyTuple_Check(object.ptr()) && !PyList_Check(object.ptr())) return {to_extent(what, object)};
    std::vector<std::uint64_t> extents;
    for (py::handle item : object) extents.push_back(to_extent(what, item));
    if (extents.empty() || extents.size() > 3) fail_extents(what, object);
    return extents;
}

namespace {

void refuse_nothing(const char* what, const Dim3& extents, const char* unit) {
    if (extents.x > 0 && extents.y > 0 && extents.z > 0) return;
    throw ArgumentError(ErrorKind::value,
                        fmt::format("`{}` is ({}, {}, {}): every extent is at least 1 {}. For an amount of "
                                    "work that may be 0 use kernel.forall(count).",
                                    what, extents.x, extents.y, extents.z, unit),
                        {.field = what});
}

}  // namespace

LaunchConfig to_config(py::handle grid, py::handle block, py::handle shared_bytes, bool cooperative,
                       py::handle cluster, bool programmatic, std::optional<int> priority,
                       std::optional<int> shared_carveout) {
    LaunchConfig config;
    config.grid = to_dim3("grid", grid);
    config.block = to_dim3("block", block);
    config.shared_bytes = to_uint32("shared_bytes", to_extent("shared_bytes", shared_bytes));
    config.cooperative = cooperative;
    config.programmatic = programmatic;
    if (cluster && !cluster.is_none()) config.cluster = to_dim3("cluster", cluster);
    config.priority = priority;
    config.shared_carveout = shared_carveout;
    refuse_nothing("grid", config.grid, "block");
    refuse_nothing("block", config.block, "thread");
    refuse_nothing("cluster", config.cluster, "block");
    return config;
}

void bind_values(py::module_& module) {
    bind_diagnostic(module);
    bind_launch_config(module);
    bind_compile_options(module);
    bind_cache_statistics(module);
}

}  // namespace bascule::python
