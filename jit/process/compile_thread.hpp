// The threads on which compiles run, with a large stack and the program's own signal handlers, and the waits for them:
// Ctrl-C ends the wait but not the compile, and long waits can be shown to the user.
#pragma once

#include <csignal>
#include <functional>
#include <future>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/process/services.hpp>

namespace bascule {

/// The wait was interrupted. The compile goes on and stores its image in the cache.
class CompileInterrupted : public Error {
  public:
    using Error::Error;
};

/// Whether the calling thread is one that was started for a compile.
bool is_compile_thread() noexcept;

/// Runs `work`, which compiles `what`. If the calling thread is watched, the work runs on another thread, which goes on
/// if the wait is interrupted; so `work` must own what it uses. The process does not end before that thread has
/// finished. Throws: what `work` throws; CompileInterrupted.
void run_watched(const std::string& what, const std::function<void()>& work);

/// While it lives, the calling thread waits for another process; watches that wait for this thread's compile are told so.
class WaitForProcess {
  public:
    WaitForProcess() = default;
    ~WaitForProcess() { set_process(0); }
    WaitForProcess(WaitForProcess&&) = delete;
    /// 0: the process is not known.
    void set_process(int process) const noexcept;
};

/// Waits for another thread's compile of `what`. Throws: what that compile threw; CompileInterrupted.
void wait_watched(const std::string& what, const std::shared_future<void>& end);

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
