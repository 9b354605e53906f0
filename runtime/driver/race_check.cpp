// Queries the emulated device for the races that it found, and whether race detection is on.
#include <utility>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/driver/device.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/emulated_device.hpp>
#include <bascule/runtime/driver/race_check.hpp>

namespace bascule {

std::atomic<detail::RaceWatch> detail::race_watch{RaceWatch::unknown};

namespace {

using detail::RaceWatch;

/// The environment may have turned detection on before the driver was loaded, so the library is queried once.
RaceWatch known_watch() noexcept {
    RaceWatch watch = detail::race_watch.load();
    if (watch != RaceWatch::unknown) return watch;
    const Driver* driver = Driver::existing();
    if (driver == nullptr) return RaceWatch::unknown;
    const EmulatedFunctions* emulated = driver->emulated_functions();
    const bool on = emulated != nullptr && (emulated->checks() & BASCULE_EMULATED_CHECK_RACES) != 0;
    detail::race_watch.compare_exchange_strong(watch, on ? RaceWatch::on : RaceWatch::off);
    return detail::race_watch.load();
}

}  // namespace

void detail::raise_found_races() {
    if (known_watch() != RaceWatch::on) return;
    std::vector<std::string> races = take_races();
    if (!races.empty()) throw RaceError(std::move(races));
}

bool look_for_races(bool on) {
    const EmulatedFunctions& emulated = Driver::get().require_emulated(
        "kernels run on a GPU, where races between streams cannot be seen. Set BASCULE_DEVICE=emulated.");
    const std::uint32_t before = emulated.checks();
    const std::uint32_t races = BASCULE_EMULATED_CHECK_RACES;
    emulated.set_checks(on ? before | races : before & ~races);
    detail::race_watch.store(on ? RaceWatch::on : RaceWatch::off);
    return (before & races) != 0;
}

bool looks_for_races() noexcept { return known_watch() == RaceWatch::on; }

std::vector<std::string> take_races() {
    const Driver* driver = Driver::existing();
    if (driver == nullptr || driver->emulated_functions() == nullptr) return {};
    return driver->emulated_functions()->new_races();
}

void finish_devices() noexcept {
    if (Driver::existing() == nullptr) return;
    try {
        for (const Device device : Device::used()) {
            const ContextGuard context(device.context());
            Driver::existing()->api().cuCtxSynchronize();
        }
    } catch (...) {  // out of memory, or the driver is gone
    }
}

}  // namespace bascule
