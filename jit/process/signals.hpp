// Ctrl-C during a compile: NVRTC up to 13.0 takes SIGINT and SIGTERM over and ends the process.
#pragma once

#include <functional>

namespace bascule {

/// Runs `work` on a thread of its own and waits for it; meanwhile, handlers of SIGINT and SIGTERM that lie in
/// the shared library around `address` are replaced by those that were there before. Thread-safe: concurrent
/// calls agree on what was there before. Throws: what `work` throws.
void run_keeping_signal_handlers(const void* address, const std::function<void()>& work);

}  // namespace bascule
