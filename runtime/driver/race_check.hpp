// Turns stream races that the emulated device found into exceptions when the host waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace bascule {

namespace detail {
enum class RaceWatch : std::uint8_t { unknown, off, on };
extern std::atomic<RaceWatch> race_watch;
void raise_found_races();
}  // namespace detail

/// Throws RaceError with the races found since the last call. Called after every wait of the host, and after a query
/// that found work finished. Costs one relaxed load if race detection is off, as on a GPU.
inline void raise_races() {
    if (detail::race_watch.load(std::memory_order_relaxed) != detail::RaceWatch::off) [[unlikely]]
        detail::raise_found_races();
}

/// Turns race detection on or off and returns the previous setting. Pending work is not checked: call `finish_devices`
/// first. Throws: LibraryError on a GPU, which cannot detect races.
bool look_for_races(bool on);

/// True if race detection is on. False on a GPU, and before the driver is loaded.
bool looks_for_races() noexcept;

/// Returns one report for each race found since the last call.
std::vector<std::string> take_races();

/// Waits for every device in use. Failures are reported by the next call that uses the device. Does nothing if no
/// driver is loaded.
void finish_devices() noexcept;

}  // namespace bascule
