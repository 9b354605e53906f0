// Waiting for a compile: Ctrl-C ends the wait and not the compile, and a wait that takes long can be shown.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <string>

#include <bascule/interface/errors/error.hpp>

namespace bascule {

/// How threads wait for compiles. Python's bindings have one, because Python handles signals in its main thread alone.
struct CompileWatch {
    /// Whether the calling thread is to be asked while it waits; its compiles run on threads of their own then.
    bool (*watches_this_thread)() noexcept;
    /// Asked in the waiting thread every 50 ms, with no lock held. `what` is compiled; true ends the wait.
    bool (*is_interrupted)(const std::string& what, std::chrono::milliseconds waited) noexcept;
    /// Called in the waiting thread when a wait that was asked about has ended.
    void (*ended)() noexcept;
};

/// From now on all threads wait like this. `watch` lives as long as the process.
void set_compile_watch(const CompileWatch& watch) noexcept;

/// The wait was interrupted. The compile goes on, and its image will be in the cache.
class CompileInterrupted : public Error {
  public:
    using Error::Error;
};

/// Whether work runs on a thread of its own at the moment: this one.
bool is_compile_thread() noexcept;

/// Runs `work`, which compiles `what`. Where the calling thread is watched, on another thread, which goes on when the
/// wait is interrupted: `work` owns what it uses. The end of the process waits for that thread. Throws: what `work`
/// throws; CompileInterrupted.
void run_watched(const std::string& what, const std::function<void()>& work);

/// While it lives, the calling thread waits for another process, which whoever waits for the thread's compile is told.
class WaitForProcess {
  public:
    WaitForProcess() = default;
    ~WaitForProcess() { set_process(0); }
    WaitForProcess(WaitForProcess&&) = delete;
    /// 0: it is not known which.
    void set_process(int process) const noexcept;
};

/// Waits for another thread's compile of `what`. Throws: what it threw; CompileInterrupted.
void wait_watched(const std::string& what, const std::shared_future<void>& end);

}  // namespace bascule
