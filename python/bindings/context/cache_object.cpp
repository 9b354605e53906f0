// The cache for bascule.cache and bascule._remembered. Routes its warnings to Python's `warnings`, and messages about
// compilations to `logging`.

#include <bascule/jit/headers/header_scan.hpp>
#include <bascule/jit/lookup/cache.hpp>
#include <bascule/jit/lookup/disk_cache.hpp>
#include <bascule/runtime/kernels/kernel.hpp>

#include "parts.hpp"
#include "support/errors.hpp"
#include "support/interruption.hpp"

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

/// The names come from the text, which may contain bytes that are not UTF-8.
py::tuple names_of(const std::vector<KernelImage>& kernels) {
    py::list names;
    for (const KernelImage& kernel : kernels) {
        if (kernel.lowered_name.empty()) continue;  // only its signature was asked for
        names.append(to_readable(kernel.expression.empty() ? kernel.name : kernel.expression));
    }
    return py::tuple(names);
}

/// Returns (problem, [a dict of the attributes of bascule.cache.Entry]), with times in nanoseconds.
py::tuple list_entries() {
    std::optional<std::string> problem;
    const std::vector<DiskCache::Listed> entries = without_gil([&] { return disk().list(problem); });
    py::list rows;
    for (const auto& [name, bytes, used_ns, description] : entries) {
        const Image image = description.image.value_or(Image{});
        rows.append(py::dict("name"_a = name, "bytes"_a = bytes, "last_used"_a = used_ns,
                             "kernels"_a = names_of(image.kernels),
                             "arch"_a = description.image ? to_string(image.arch) : "",
                             "nvrtc"_a = image.nvrtc_version, "problem"_a = description.problem));
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
