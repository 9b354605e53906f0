// Whether the program still wants its work: not after Ctrl-C, and not when the process ends.
#pragma once

#include <chrono>

namespace emulated::driver {

/// Whether the program no longer wants what the calling thread runs or waits for. Asks the client
/// (bascule_emulated_set_interrupt), at most every 100 ms until it says so. The caller holds no lock.
bool interrupted() noexcept;

/// From then on `interrupted` is true everywhere; `time_point::max()` takes that back.
void interrupt_at(std::chrono::steady_clock::time_point time) noexcept;

/// The process is about to end: from now on whatever waits only to free something does nothing.
void begin_ending() noexcept;
bool ending() noexcept;

}  // namespace emulated::driver
