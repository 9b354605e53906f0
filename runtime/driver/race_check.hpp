// Stream races that the emulated device found become exceptions where the host waits.
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

/// Throws RaceError with the races found since the last call. Called after every wait of the host, and after a
/// query that found work done; costs one relaxed load where races are not looked for, as on a GPU.
inline void raise_races() {
    if (detail::race_watch.load(std::memory_order_relaxed) != detail::RaceWatch::off) [[unlikely]]
        detail::raise_found_races();
}

/// Whether the emulated device looks for races from now on; returns whether it did. Pending work is
/// not checked: call `finish_devices` before. Throws: LibraryError on a GPU, which cannot find races.
bool look_for_races(bool on);

/// Whether races are looked for. False on a GPU, and before the driver was needed.
bool looks_for_races() noexcept;

/// A report of each race found since the last call.
std::vector<std::string> take_races();

/// Waits for every device that was used. Failures are reported by the next call that uses
/// the device. Does nothing before the driver was needed.
void finish_devices() noexcept;

}  // namespace bascule
