#include "values/values.hpp"

#include <algorithm>
#include <string>

#include <fmt/ranges.h>

#include <bascule/interface/errors/diagnostic.hpp>
#include <bascule/interface/errors/rejection.hpp>
#include <bascule/jit/lookup/cache.hpp>

#include "parts.hpp"
#include "support/attributes.hpp"
#include "support/integers.hpp"
#include "support/without_gil.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace bascule::python {
namespace {

[[noreturn]] void fail_extents(const char* what, py::handle got) {
    if (PyFloat_Check(got.ptr())) {
        reject_field(ErrorKind::type, what,
                     "`{}` must be an integer, got the float {}: write int(...), or // for /.", what,
                     std::string(py::repr(got)));
    }
    const bool many = std::string_view(what) != "shared_bytes";
    reject_field(ErrorKind::type, what, "`{}` must be {}, got {}.", what,
                 many ? "an integer or a tuple of up to three" : "an integer, the bytes of shared memory",
                 std::string(py::repr(got)));
}

std::uint64_t to_extent(const char* what, py::handle object) {
    const py::object integer = try_int(object);
    if (!integer) fail_extents(what, object);
    if (const auto value = to_uint64(integer)) return *value;
    const std::string got = py::str(integer);
    reject_field(ErrorKind::value, what, "`{}` is {}, which is {}.", what, got,
                 got.starts_with('-') ? "below 0" : "above the limit of every device");
}

std::uint32_t to_uint32(const char* what, std::uint64_t value) {
    if (value > UINT32_MAX) {
        reject_field(ErrorKind::value, what, "`{}` is {}, which is above the limit of every device.", what,
                     value);
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

/// Returns a Python expression, without attributes that have their default.
std::string repr_of(const LaunchConfig& c) {
    std::string text = fmt::format(
        "bascule.LaunchConfig(grid=({}, {}, {}), block=({}, {}, {}), shared_bytes={}, cooperative={}",
        c.grid.x, c.grid.y, c.grid.z, c.block.x, c.block.y, c.block.z, c.shared_bytes.value,
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
        .def(py::init(&to_config), "grid"_a, "block"_a, py::kw_only(), "shared_bytes"_a = 0,
             "cooperative"_a = false, "cluster"_a = py::none(), "programmatic"_a = false,
             "priority"_a = py::none(), "shared_carveout"_a = py::none())
        .def_property_readonly("grid", [](const LaunchConfig& c) { return to_tuple(c.grid); })
        .def_property_readonly("block", [](const LaunchConfig& c) { return to_tuple(c.block); })
        .def_property_readonly("shared_bytes", [](const LaunchConfig& c) { return c.shared_bytes.value; })
        .def_readonly("cooperative", &LaunchConfig::cooperative)
        .def_property_readonly("cluster", [](const LaunchConfig& c) { return to_tuple(c.cluster); })
        .def_readonly("programmatic", &LaunchConfig::programmatic)
        .def_readonly("priority", &LaunchConfig::priority)
        .def_readonly("shared_carveout", &LaunchConfig::shared_carveout)
        .def(py::self == py::self)
        .def("__hash__", [](const LaunchConfig& c) { return py::hash(py::str(repr_of(c))); })
        .def(py::pickle(
            [](const LaunchConfig& c) {
                return py::make_tuple(to_tuple(c.grid), to_tuple(c.block), c.shared_bytes.value,
                                      c.cooperative, to_tuple(c.cluster), c.programmatic, c.priority,
                                      c.shared_carveout);
            },
            [](const py::tuple& state) {
                return to_config(state[0], state[1], state[2], state[3].cast<bool>(), state[4],
                                 state[5].cast<bool>(), state[6].cast<std::optional<int>>(),
                                 state[7].cast<std::optional<int>>());
            }))
        .def("__repr__", [](const LaunchConfig& c) { return repr_of(c); });
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
        .def(py::self == py::self)
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

void refuse_nothing(const char* what, const Dim3& extents, const char* unit) {
    if (extents.x > 0 && extents.y > 0 && extents.z > 0) return;
    reject_field(ErrorKind::value, what,
                 "`{}` is ({}, {}, {}): every extent is at least 1 {}. For an amount of work that may be 0 "
                 "use kernel.forall(count).",
                 what, extents.x, extents.y, extents.z, unit);
}

}  // namespace

py::tuple to_tuple(const Dim3& size) { return py::make_tuple(size.x, size.y, size.z); }

std::vector<std::uint64_t> to_extents(const char* what, py::handle object) {
    if (!is_several(object)) return {to_extent(what, object)};
    std::vector<std::uint64_t> extents;
    for (py::handle item : py::tuple(py::reinterpret_borrow<py::object>(object)))
        extents.push_back(to_extent(what, item));
    if (extents.empty() || extents.size() > 3) fail_extents(what, object);
    return extents;
}

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
