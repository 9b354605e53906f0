// The threads on which compilers run: with a large stack, and with the program's own signal handlers.
#pragma once

#include <csignal>
#include <functional>

namespace bascule {

/// Blocks all signals for the calling thread and threads that it makes, except those of their own faults, which must
/// not be blocked. Returns the previous mask.
sigset_t block_signals() noexcept;

/// Runs `work` on a separate thread and waits for it. Meanwhile, handlers of SIGINT and SIGTERM in the shared library
/// that contains `address` are replaced by the previous ones. Thread-safe: concurrent calls agree on the previous
/// handlers. Throws: what `work` throws.
void run_keeping_signal_handlers(const void* address, const std::function<void()>& work);

/// Calls `work`, which must not throw, on a thread with a stack of 256 MiB, whose unused part takes no memory, and
/// waits. If the system has no stack of that size, a smaller one is used; if not even 16 MiB, that of the calling
/// thread.
void run_on_large_stack(const std::function<void()>& work);

}  // namespace bascule
