// Tells whether the program still wants its work; it does not after Ctrl-C and at the end of the process.
#pragma once

#include <chrono>

namespace emulated::driver {

/// True if the program no longer wants what the calling thread runs or waits for. Asks the client
/// (bascule_emulated_set_interrupt) at most every 100 ms until it says so. The caller must hold no lock.
bool interrupted() noexcept;

/// Makes `interrupted` true in every thread from `time` on; `time_point::max()` cancels that.
void interrupt_at(std::chrono::steady_clock::time_point time) noexcept;

/// Declares that the process is about to end. From now on, calls that would wait only in order to free something do
/// nothing.
void begin_ending() noexcept;
bool ending() noexcept;

}  // namespace emulated::driver
