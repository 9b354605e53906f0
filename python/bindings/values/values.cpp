// bascule.Diagnostic and bascule.CacheStatistics. bascule.CompileOptions is in compile_options.cpp.
#include <string>
#include <tuple>
#include <vector>

#include <fmt/ranges.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/lookup/cache.hpp>

#include "parts.hpp"

namespace bascule::python {
namespace {

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

}  // namespace

void bind_values(py::module_& module) {
    bind_diagnostic(module);
    bind_compile_options(module);
    bind_cache_statistics(module);
}

}  // namespace bascule::python
