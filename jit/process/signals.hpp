// Signals during a compile. They belong to the program's threads, but NVRTC up to 13.0 handles SIGINT and SIGTERM and
// ends the process.
#pragma once

#include <csignal>
#include <functional>

namespace bascule {

/// Blocks all signals for the calling thread and threads that it makes, except those of their own faults, which cannot
/// be blocked. Returns the previous mask.
sigset_t block_signals() noexcept;

/// Runs `work` on a separate thread and waits for it. Meanwhile, handlers of SIGINT and SIGTERM in the shared library
/// that contains `address` are replaced by the previous ones. Thread-safe: concurrent calls agree on the previous
/// handlers. Throws: what `work` throws.
void run_keeping_signal_handlers(const void* address, const std::function<void()>& work);

}  // namespace bascule
