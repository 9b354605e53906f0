// Turns what the checks of the emulated device found into exceptions when the host waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include <bascule/interface/errors/finding.hpp>

namespace bascule {

struct EmulatedFinding;

namespace detail {
constexpr std::uint32_t unknown_checks = ~std::uint32_t{0};
/// The checks whose findings are raised; `unknown_checks` before the emulated device has been asked.
extern std::atomic<std::uint32_t> raised_checks;
void raise_new_findings();
}  // namespace detail

/// Throws CheckError, or RaceError if there is a race, with what checks found since the last call. Called after every
/// wait of the host, and after a query that found work finished. Costs one relaxed load if no check is on, as on a GPU.
inline void raise_found_errors() {
    if (detail::raised_checks.load(std::memory_order_relaxed) != 0) [[unlikely]]
        detail::raise_new_findings();
}

/// The checks of a list such as "init,shared_races", as bits: names, "memory" (none of the optional checks) or "all".
/// Works without a driver. Throws: ArgumentError (value) that lists the names, LibraryError.
std::uint32_t find_checks(const std::string& list);

/// Turns these checks on and all others off; returns the previous ones. Pending work is not checked: call
/// `finish_devices` first. Throws: LibraryError on a GPU, which has no such checks.
std::uint32_t set_checks(std::uint32_t checks);

/// The checks whose findings are raised. 0 on a GPU, and before the driver is loaded.
std::uint32_t checks_that_raise() noexcept;

/// What those checks found since the last call: races between streams first.
std::vector<Finding> take_findings();

/// Throws the error of these findings, if there are any.
void raise_findings(std::vector<Finding> findings);

/// Adds what only the folders above know, such as the user's lines, to each finding that is taken from now on.
using FindingDescriber = Finding (*)(EmulatedFinding found);
void set_finding_describer(FindingDescriber describe) noexcept;

/// Waits for every device in use. Failures are reported by the next call that uses the device. Does nothing if no
/// driver is loaded.
void finish_devices() noexcept;

}  // namespace bascule
