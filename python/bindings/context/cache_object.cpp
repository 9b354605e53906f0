#include "context/cache_object.hpp"

#include <pybind11/stl.h>

#include <bascule/jit/cache/cache.hpp>
#include <bascule/jit/headers/header_scan.hpp>
#include <bascule/jit/types/variable.hpp>

#include "support/gil.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace bascule::python {
namespace {

/// Called by whichever thread compiles, without the GIL. A cache never fails a compile: a warning that a
/// filter turns into an exception is reported as an unraisable one.
void warn(const std::string& text) {
    const GilTaken taken;
    if (!taken.held()) return;
    try {
        const py::object category = py::module_::import("bascule._errors").attr("CacheWarning");
        if (PyErr_WarnEx(category.ptr(), text.c_str(), 2) != 0) PyErr_WriteUnraisable(category.ptr());
    } catch (py::error_already_set& error) {
        error.discard_as_unraisable("bascule.cache");
    }
}

/// Whether a module of this text may be returned again without any check: it reads no file that could change,
/// and has no variables whose values could have changed.
bool can_be_shared(const std::string& text, const CompileOptions& options) {
    if (!find_variables(text).empty()) return false;
    Source source;
    source.text = text;
    const HeaderScan scan = scan_headers(source, options, {});
    return scan.certain && scan.manifest.empty();
}

}  // namespace

void bind_cache(py::module_& module) {
    module.def("_cache_directory", [] { return Cache::process_default().directory(); });
    module.def("_can_be_shared", &can_be_shared, "text"_a, "options"_a);
    Cache::process_default().set_warning_handler(&warn);
}

}  // namespace bascule::python
