// Waits for compiles: Ctrl-C ends the wait but not the compile, and long waits can be shown to the user.
#pragma once

#include <functional>
#include <future>
#include <string>

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

}  // namespace bascule
