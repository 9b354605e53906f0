// Waits for compiles: Ctrl-C ends the wait but not the compile, and long waits can be shown to the user.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <string>

#include <bascule/interface/errors/error.hpp>

namespace bascule {

/// How threads wait for compiles. Python's bindings set one, because only Python's main thread handles signals.
struct CompileWatch {
    /// Whether the calling thread is to be asked while it waits; its compiles then run on separate threads.
    bool (*watches_this_thread)() noexcept;
    /// Called in the waiting thread every 50 ms, without a lock. `what` is being compiled; true ends the wait.
    bool (*is_interrupted)(const std::string& what, std::chrono::milliseconds waited) noexcept;
    /// Called in the waiting thread when a wait ends for which is_interrupted was called.
    void (*ended)() noexcept;
};

/// All threads wait this way from now on. `watch` must live as long as the process.
void set_compile_watch(const CompileWatch& watch) noexcept;

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

}  // namespace bascule
