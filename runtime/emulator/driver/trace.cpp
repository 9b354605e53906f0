// The functions of emulated_abi.h: reports, the trace, times, and optional checks.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "checks/profile.hpp"
#include "driver/call.hpp"
#include "report/json.hpp"
#include "report/report.hpp"
#include "streams/timers.hpp"

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

constexpr std::uint64_t drop_none = ~std::uint64_t{0};

struct Trace {
    std::mutex mutex;
    std::vector<BasculeEmulatedOperation> operations;
    std::uint64_t counted = 0;  // records and waits since the last bascule_emulated_drop
    std::uint64_t dropped = drop_none;
};

Trace& the_trace() {
    static Trace& trace = *new Trace;
    return trace;
}

}  // namespace

void detail::add_to_trace(std::uint32_t kind, CUstream stream, CUevent event, std::uint64_t bytes,
                          std::string_view name) noexcept {
    if (races::Detector::bookkeeping()) return;
    Trace& trace = the_trace();
    BasculeEmulatedOperation operation = {};
    operation.kind = kind;
    operation.device = current_context() == nullptr ? -1 : current_context()->device;
    operation.stream = reinterpret_cast<std::uint64_t>(stream);
    operation.event = reinterpret_cast<std::uint64_t>(event);
    operation.bytes = bytes;
    const std::size_t length = std::min(name.size(), sizeof operation.name - 1);
    std::memcpy(operation.name, name.data(), length);
    const std::lock_guard lock(trace.mutex);
    trace.operations.push_back(operation);
}

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

bool detail::is_dropped() noexcept {
    if (races::Detector::bookkeeping()) return false;
    Trace& trace = the_trace();
    const std::lock_guard lock(trace.mutex);
    return trace.counted++ == trace.dropped;
}

std::size_t copy_text(const std::string& from, char* text, std::size_t capacity) noexcept {
    if (capacity > 0) text[from.copy(text, capacity - 1)] = '\0';
    return from.size();
}

}  // namespace emulated::driver

using emulated::driver::Process;
using emulated::races::Detector;
using emulated::streams::Timers;

EMULATED_EXPORT uint32_t bascule_emulated_abi(void) {
    emulated::report::expect_reader();
    return BASCULE_EMULATED_ABI;
}

EMULATED_EXPORT size_t bascule_emulated_last_report(char* text, size_t capacity) {
    return emulated::driver::copy_text(Process::get().report(), text, capacity);
}

EMULATED_EXPORT size_t bascule_emulated_last_fault(char* json, size_t capacity) {
    return emulated::driver::copy_text(Process::get().fault(), json, capacity);
}

EMULATED_EXPORT uint64_t* bascule_emulated_next_site(void) { return &emulated::driver::next_site(); }

EMULATED_EXPORT void bascule_emulated_next_arrays(const BasculeEmulatedArray* arrays, size_t count) {
    auto& next = emulated::driver::next_arrays();
    next.clear();
    for (const BasculeEmulatedArray& each : std::span(arrays, count)) {
        next.push_back({each.parameter, each.itemsize, each.first, each.bytes,
                        each.name == nullptr ? std::string() : std::string(each.name)});
    }
}

EMULATED_EXPORT uint64_t* bascule_emulated_next_timer(void) { return &Timers::next(); }

EMULATED_EXPORT int bascule_emulated_take_times(uint64_t number, int64_t* begin, int64_t* end) {
    const auto span = Timers::get().take(number);
    if (!span) return 0;
    const auto nanoseconds = [](auto time) {
        return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
    };
    *begin = nanoseconds(span->begin);
    *end = nanoseconds(span->end);
    return 1;
}

EMULATED_EXPORT void bascule_emulated_trace(int on) {
    auto& trace = emulated::driver::the_trace();
    const std::lock_guard lock(trace.mutex);
    if (on != 0) trace.operations.clear();
    emulated::driver::detail::tracing.store(on != 0);
}

EMULATED_EXPORT size_t bascule_emulated_trace_read(BasculeEmulatedOperation* out, size_t capacity) {
    auto& trace = emulated::driver::the_trace();
    const std::lock_guard lock(trace.mutex);
    std::copy_n(trace.operations.begin(), std::min(capacity, trace.operations.size()), out);
    return trace.operations.size();
}

EMULATED_EXPORT void bascule_emulated_bookkeeping(int on) { Detector::set_bookkeeping(on != 0); }

EMULATED_EXPORT void bascule_emulated_allocated(uint64_t address) {
    const auto* known = emulated::driver::Process::get().heap().find(address);
    if (known != nullptr) Detector::get().forget_allocation(known->base, known->bytes);
}

EMULATED_EXPORT void bascule_emulated_unused(uint64_t address) {
    const auto* known = emulated::driver::Process::get().heap().find(address);
    if (known != nullptr) Detector::get().forget(known->base, known->bytes);
}

EMULATED_EXPORT uint64_t bascule_emulated_drop(uint64_t number) {
    auto& trace = emulated::driver::the_trace();
    const std::lock_guard lock(trace.mutex);
    trace.dropped = number;
    emulated::driver::detail::dropping.store(true);
    return std::exchange(trace.counted, 0);
}

EMULATED_EXPORT void bascule_emulated_name_allocation(uint64_t address, const char* name) {
    Process::get().heap().set_name(address, name);
}

EMULATED_EXPORT void bascule_emulated_reset(int device) {
    Process& process = Process::get();
    if (process.initialised() && process.is_device(device)) process.reset(device);
}

EMULATED_EXPORT uint64_t bascule_emulated_implicit_synchronizations(void) {
    return emulated::driver::detail::implicit_synchronizations.load(std::memory_order_relaxed);
}

EMULATED_EXPORT void bascule_emulated_advance_clock(int64_t nanoseconds) {
    emulated::streams::clock_advance.fetch_add(nanoseconds, std::memory_order_relaxed);
}

EMULATED_EXPORT uint64_t bascule_emulated_call_count(const char* driver_function) {
    uint64_t calls = 0;
    for (const auto* entry = emulated::driver::EntryPoint::first; entry != nullptr; entry = entry->next) {
        if (entry->name == driver_function) calls += entry->calls.load(std::memory_order_relaxed);
    }
    return calls;
}

// Optional checks

EMULATED_EXPORT const char* bascule_emulated_check_names(void) { return emulated::checks::names().data(); }

EMULATED_EXPORT int bascule_emulated_find_checks(const char* list, uint32_t* checks) {
    const auto known = emulated::checks::parse(list);
    if (known) *checks = *known;
    return known ? 1 : 0;
}

EMULATED_EXPORT uint32_t bascule_emulated_checks(void) { return Process::get().checks; }

EMULATED_EXPORT uint32_t bascule_emulated_set_checks(uint32_t checks) {
    Process& process = Process::get();
    if (!process.environment().executes)
        checks &= BASCULE_EMULATED_CHECK_LEAKS;  // nothing runs that could be checked
    Detector::get().switch_to((checks & BASCULE_EMULATED_CHECK_RACES) != 0);
    process.heap().shadow().turn(emulated::checks::has(checks, emulated::checks::Check::init));
    return process.checks.exchange(checks);
}

EMULATED_EXPORT size_t bascule_emulated_take_findings(char* json, size_t capacity) {
    std::string all = "[";
    for (const std::string& each : emulated::checks::take_findings(true))
        all += (all.size() == 1 ? "" : ",") + each;
    all += "]";
    if (all.size() < capacity) emulated::checks::take_findings(false);
    return emulated::driver::copy_text(all, json, capacity);
}

EMULATED_EXPORT void bascule_emulated_profile(int on) {
    return on != 0 ? emulated::checks::start_profile() : emulated::checks::stop_profile();
}

EMULATED_EXPORT size_t bascule_emulated_profile_read(char* json, size_t capacity) {
    return emulated::driver::copy_text(emulated::checks::read_profile(), json, capacity);
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
