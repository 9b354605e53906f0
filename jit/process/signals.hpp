// Signals during a compile: they are for the program's threads, and NVRTC up to 13.0 takes SIGINT and SIGTERM over and
// ends the process.
#pragma once

#include <csignal>
#include <functional>

namespace bascule {

/// From now on the calling thread, and those that it makes, get no signals but those that its own faults raise, which
/// cannot be blocked. Returns the mask before.
sigset_t block_signals() noexcept;

/// Runs `work` on a thread of its own and waits for it; meanwhile, handlers of SIGINT and SIGTERM that lie in
/// the shared library around `address` are replaced by those that were there before. Thread-safe: concurrent
/// calls agree on what was there before. Throws: what `work` throws.
void run_keeping_signal_handlers(const void* address, const std::function<void()>& work);

}  // namespace bascule
