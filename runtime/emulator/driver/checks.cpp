// The functions of emulated_abi.h about what is looked for beside faults.
#include <atomic>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "driver/call.hpp"
#include "report/json.hpp"
#include "report/report.hpp"

namespace emulated::driver {
namespace {

std::atomic<BasculeEmulatedSite> site_of_caller{nullptr};

std::string what(std::uint32_t kind, std::uint64_t bytes, std::string_view name) {
    if (kind == BASCULE_EMULATED_LAUNCH)
        return fmt::format("launch of '{}'", report::demangled(std::string(name)));
    if (kind == BASCULE_EMULATED_COPY) return fmt::format("copy of {} bytes ({})", bytes, name);
    if (kind == BASCULE_EMULATED_FILL) return fmt::format("fill of {} bytes ({})", bytes, name);
    if (kind == BASCULE_EMULATED_ALLOCATE) return fmt::format("allocation of {} bytes ({})", bytes, name);
    return std::string(name);
}

}  // namespace

void detail::announce(std::uint32_t kind, CUstream stream, std::uint64_t bytes, std::string_view name) {
    races::Announcement announcement;
    announcement.stream = reinterpret_cast<std::uint64_t>(stream);
    if (const Context* context = current_context(); context != nullptr && Process::get().devices() > 1)
        announcement.device = context->device;
    what(kind, bytes, name).copy(announcement.what, sizeof announcement.what - 1);
    if (const BasculeEmulatedSite site = site_of_caller.load())
        site(announcement.site, sizeof announcement.site);
    races::Detector::announce(announcement);
}

}  // namespace emulated::driver

using emulated::driver::Process;
using emulated::races::Detector;

EMULATED_EXPORT uint32_t bascule_emulated_checks(void) {
    Process& process = Process::get();
    const bool races = process.environment().executes && Detector::get().on();
    return (races ? BASCULE_EMULATED_CHECK_RACES : 0) |
           (process.reports_leaks ? BASCULE_EMULATED_CHECK_LEAKS : 0);
}

EMULATED_EXPORT uint32_t bascule_emulated_set_checks(uint32_t checks) {
    const uint32_t before = bascule_emulated_checks();
    Detector::get().switch_to((checks & BASCULE_EMULATED_CHECK_RACES) != 0 &&
                              Process::get().environment().executes);
    Process::get().reports_leaks = (checks & BASCULE_EMULATED_CHECK_LEAKS) != 0;
    return before;
}

EMULATED_EXPORT void bascule_emulated_set_site(BasculeEmulatedSite site) {
    emulated::driver::site_of_caller.store(site);
}

EMULATED_EXPORT size_t bascule_emulated_take_races(char* json, size_t capacity) {
    const std::string all = emulated::report::to_text(Detector::get().reports());
    if (all.size() < capacity) Detector::get().take_reports();
    return emulated::driver::copy_text(all, json, capacity);
}

EMULATED_EXPORT size_t bascule_emulated_leaks(char* json, size_t capacity) {
    auto all = nlohmann::json::array();
    for (const auto* context : Process::get().contexts()) {
        for (const auto& leak : context->kernel_heap.live()) {
            all.push_back({{"kernel", leak.kernel},
                           {"place", emulated::heap::words_of(leak.line)},
                           {"count", leak.count},
                           {"bytes", leak.bytes}});
        }
    }
    return emulated::driver::copy_text(emulated::report::to_text(all), json, capacity);
}

EMULATED_EXPORT void bascule_emulated_race_statistics(BasculeEmulatedRaceStatistics* out) {
    const auto [nodes, edges, bytes, races] = Detector::get().statistics();
    *out = {nodes, edges, bytes, races};
}
