#include "values.hpp"

#include <string>

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <bascule/interface/error.hpp>
#include <bascule/jit/cache.hpp>
#include <bascule/jit/source.hpp>

namespace py = pybind11;
using namespace py::literals;

namespace bascule::python {
namespace {

using Kind = ArgumentError::Kind;

[[noreturn]] void fail_extents(const char* what, py::handle got) {
    throw ArgumentError(Kind::type,
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
        throw ArgumentError(
            Kind::value,
            fmt::format("`{}` cannot be {}: it counts from 0 up.", what, std::string(py::str(integer))),
            {.field = what});
    }
    return value;
}

std::uint32_t to_uint32(const char* what, std::uint64_t value) {
    if (value > UINT32_MAX) {
        throw ArgumentError(Kind::value,
                            fmt::format("`{}` is {}, which is beyond every device's limit.", what, value),
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

void bind_launch_config(py::module_& module) {
    py::class_<LaunchConfig>(
        module, "LaunchConfig",
        R"(A launch's geometry: grid in blocks, block in threads, dynamic shared memory in bytes.)")
        .def(py::init(&to_config), "grid"_a, "block"_a, py::kw_only(), "shared_bytes"_a = 0,
             "cooperative"_a = false)
        .def_property_readonly(
            "grid", [](const LaunchConfig& c) { return py::make_tuple(c.grid.x, c.grid.y, c.grid.z); })
        .def_property_readonly(
            "block", [](const LaunchConfig& c) { return py::make_tuple(c.block.x, c.block.y, c.block.z); })
        .def_readonly("shared_bytes", &LaunchConfig::shared_bytes)
        .def_readonly("cooperative", &LaunchConfig::cooperative)
        .def("__eq__", [](const LaunchConfig& a, const LaunchConfig& b) { return a == b; })
        .def("__repr__", [](const LaunchConfig& c) {
            return fmt::format(
                "bascule.LaunchConfig(grid=({}, {}, {}), block=({}, {}, {}), shared_bytes={}, "
                "cooperative={})",
                c.grid.x, c.grid.y, c.grid.z, c.block.x, c.block.y, c.block.z, c.shared_bytes,
                c.cooperative ? "True" : "False");
        });
}

void bind_compile_options(py::module_& module) {
    py::class_<CompileOptions>(module, "CompileOptions", R"(How a text is compiled.

std : 'c++17' or 'c++20'. defines : {name: value}; None defines the bare name. include_paths : directories searched for headers.
headers : {name: text} found by #include. arch : 'sm_90', 'compute_80'; None means the device's. extra : more NVRTC options.)")
        .def(py::init([](std::string std, const py::dict& defines,
                         const std::vector<py::object>& include_paths, const py::dict& headers, bool lineinfo,
                         bool debug, bool fast_math, const std::optional<std::string>& arch,
                         std::vector<std::string> extra) {
                 CompileOptions options;
                 options.std = std::move(std);
                 for (auto [name, value] : defines) {
                     options.defines.emplace_back(py::str(name),
                                                  value.is_none() ? "" : std::string(py::str(value)));
                 }
                 for (const py::object& path : include_paths) {
                     options.include_paths.push_back(
                         py::module_::import("os").attr("fspath")(path).cast<std::string>());
                 }
                 for (auto [name, text] : headers) options.headers.emplace_back(py::str(name), py::str(text));
                 options.lineinfo = lineinfo;
                 options.debug = debug;
                 options.fast_math = fast_math;
                 if (arch) options.arch = parse_arch(*arch);
                 options.extra = std::move(extra);
                 return options;
             }),
             py::kw_only(), "std"_a = "c++17", "defines"_a = py::dict(),
             "include_paths"_a = std::vector<py::object>(), "headers"_a = py::dict(), "lineinfo"_a = false,
             "debug"_a = false, "fast_math"_a = false, "arch"_a = py::none(),
             "extra"_a = std::vector<std::string>())
        .def("__eq__", [](const CompileOptions& a, const CompileOptions& b) { return a == b; })
        .def("__repr__", [](const CompileOptions& options) {
            std::string text;
            for (const std::string& argument : to_arguments(options)) text += " " + argument;
            return fmt::format("<bascule.CompileOptions{}>", text);
        });
}

void bind_cache_statistics(py::module_& module) {
    py::class_<CacheStatistics>(module, "CacheStatistics", "Counts since the process started.")
        .def_readonly("compiled", &CacheStatistics::compiled, "Programs whose image was compiled.")
        .def_readonly("from_memory", &CacheStatistics::from_memory)
        .def_readonly("from_disk", &CacheStatistics::from_disk)
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

LaunchConfig to_config(py::handle grid, py::handle block, py::handle shared_bytes, bool cooperative) {
    return {to_dim3("grid", grid), to_dim3("block", block),
            to_uint32("shared_bytes", to_extent("shared_bytes", shared_bytes)), cooperative};
}

void bind_values(py::module_& module) {
    bind_launch_config(module);
    bind_compile_options(module);
    bind_cache_statistics(module);
}

}  // namespace bascule::python
