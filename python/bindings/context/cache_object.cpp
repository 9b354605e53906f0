// The cache for bascule.cache and bascule._remembered. Routes its warnings to Python's `warnings`, and messages about
// compilations to `logging`.

#include <bascule/jit/cache/cache.hpp>
#include <bascule/jit/cache/disk_cache.hpp>
#include <bascule/jit/headers/header_scan.hpp>
#include <bascule/runtime/kernels/kernel.hpp>

#include "parts.hpp"
#include "support/errors.hpp"
#include "support/gil.hpp"
#include "support/pybind.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace bascule::python {
namespace {

/// Called by the thread that compiles, without the GIL. The cache must not make a compilation fail: if a filter turns
/// the warning into an exception, it is reported as unraisable.
void warn_of_cache(const std::string& text) {
    const GilAcquired gil;
    if (!gil.held()) return;
    call_unraisable("bascule.cache", [&] { warn("CacheWarning", text); });
}

/// Whether a module may be returned again without checks: it reads no file that could change, and has no variables
/// whose values could have changed.
bool can_be_shared(const Module& module) {
    if (!module.is_stateless()) return false;
    const HeaderScan scan = scan_headers(module.source(), module.options(), {});
    return scan.certain && !scan.names_headers;
}

DiskCache& disk() { return Cache::process_default().disk(); }

/// Names come from the text, which may contain bytes that are not UTF-8.
py::tuple to_names(const std::vector<std::string>& names) {
    py::tuple tuple(names.size());
    for (std::size_t i = 0; i < names.size(); ++i) tuple[i] = to_readable(names[i]);
    return tuple;
}

/// Returns (problem, [(name, bytes, used_ns, problem of the entry, kernels, arch, nvrtc_version)]).
py::tuple list_entries() {
    std::optional<std::string> problem;
    const std::vector<DiskCache::Listed> entries = without_gil([&] { return disk().list(problem); });
    py::list rows;
    for (const DiskCache::Listed& entry : entries) {
        const EntryDescription& about = entry.description;
        rows.append(py::make_tuple(entry.name, entry.bytes, entry.used_ns, about.problem,
                                   to_names(about.kernels), about.arch, about.nvrtc_version));
    }
    return py::make_tuple(problem, rows);
}

std::optional<py::bytes> entry_bytes(const std::string& name) {
    const std::optional<std::string> bytes = without_gil([&] { return disk().bytes_of(name); });
    return bytes ? std::optional<py::bytes>(*bytes) : std::nullopt;
}

/// Returns (whether the entry was kept, problem).
py::tuple adopt_entry(const py::bytes& bytes) {
    const std::string_view view = bytes;
    std::optional<std::string> problem;
    const bool kept = without_gil([&] { return disk().adopt(view, problem); });
    return py::make_tuple(kept, problem);
}

/// Returns (entries, bytes, problem).
template <Removed (DiskCache::*remove)() const>
py::tuple remove_entries() {
    const Removed removed = without_gil([] { return (disk().*remove)(); });
    return py::make_tuple(removed.entries, removed.bytes, removed.problem);
}

}  // namespace

void bind_cache(py::module_& module) {
    module.def("_cache_directory", [] { return disk().directory(); });
    module.def("_cache_limit", [] { return disk().limit_bytes(); });
    module.def(
        "_set_cache_limit", [](std::uint64_t bytes) { disk().set_limit_bytes(bytes); }, "bytes"_a);
    module.def("_cache_list", &list_entries);
    module.def("_cache_bytes", &entry_bytes, "name"_a);
    module.def(
        "_cache_problem", [](const py::bytes& bytes) { return describe_entry(bytes).problem; }, "bytes"_a);
    module.def("_cache_adopt", &adopt_entry, "bytes"_a);
    module.def("_cache_sweep", &remove_entries<&DiskCache::sweep>);
    module.def("_cache_remove_all", &remove_entries<&DiskCache::remove_all>);
    module.def("_cache_is_disabled", &Cache::is_disabled);
    py::class_<Cache::Disabled>(module, "_CacheDisabled").def(py::init<>());
    module.def("_can_be_shared", &can_be_shared, "module"_a);
    module.def("_hold_compiles", &Nvrtc::hold_compiles, "hold"_a);
    Cache::process_default().set_warning_handler(&warn_of_cache);
}

}  // namespace bascule::python
