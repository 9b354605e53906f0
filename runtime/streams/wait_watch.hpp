// Waiting for a GPU in a way that a signal can end.
#pragma once

#include <functional>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/driver/driver.hpp>

namespace bascule {

/// How threads wait for a GPU; the emulated device has a way of its own (BasculeEmulatedInterrupt). Python's bindings
/// have one, because Python handles signals in its main thread alone, and not while that is inside the driver.
struct WaitWatch {
    /// Whether the calling thread is to be asked while it waits.
    bool (*watches_this_thread)() noexcept;
    /// Asked in the waiting thread about every 100 ms, with no lock held. True ends the wait.
    bool (*is_interrupted)() noexcept;
};

/// From now on all threads wait like this. `watch` lives as long as the process.
void set_wait_watch(const WaitWatch& watch) noexcept;

/// Whether the calling thread's waits can be ended.
bool waits_are_watched() noexcept;

/// The wait was ended. What was enqueued goes on.
class WaitInterrupted : public Error {
  public:
    using Error::Error;
};

/// Throws WaitInterrupted with a message about the wait for `what`.
[[noreturn]] void throw_wait_interrupted(const char* what);

/// The result of a wait whose end `query` tells: CUDA_ERROR_NOT_READY until then. `wait` returns it, at once then. `what`
/// is waited for. Throws: WaitInterrupted.
DriverResult wait_watched(const char* what, const std::function<DriverResult()>& query,
                          const std::function<DriverResult()>& wait);

/// The same where no query tells the end, in a thread that is watched: `wait` runs on another one, which goes on when the
/// wait is ended. It owns what it uses.
DriverResult wait_watched_elsewhere(const char* what, std::function<DriverResult()> wait);

}  // namespace bascule
