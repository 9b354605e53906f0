#include "support/toolkit.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include <bascule/jit/lookup/cache.hpp>

#include "support/interruption.hpp"
#include "support/without_gil.hpp"

namespace bascule::python {
namespace {

// Each change of the settings gets a new number.
std::atomic<std::uint64_t> wanted{1};
std::atomic<std::uint64_t> prepared{0};
GilMutex preparing;

ToolkitLocation locate() {
    using Paths = std::vector<std::string>;
    auto [libraries, headers, found] =
        py::module_::import("bascule._toolkit").attr("locate")().cast<std::tuple<Paths, Paths, bool>>();
    return {.nvrtc_libraries = std::move(libraries),
            .include_paths = std::move(headers),
            .found_include_paths = found};
}

}  // namespace

void prepare_toolkit() {
    for (;;) {
        const std::uint64_t number = wanted.load(std::memory_order_acquire);
        if (prepared.load(std::memory_order_acquire) == number) [[likely]]
            return;
        ToolkitLocation found = locate();
        find_main_thread();
        const std::lock_guard lock(preparing);
        if (wanted.load(std::memory_order_acquire) != number) continue;  // changed meanwhile
        if (prepared.load(std::memory_order_relaxed) == number) return;  // another thread was faster
        Cache::process_default().set_toolkit(std::move(found));
        prepared.store(number, std::memory_order_release);
    }
}

void forget_toolkit() noexcept { wanted.fetch_add(1, std::memory_order_acq_rel); }

}  // namespace bascule::python
