// Waits for a GPU that a signal can interrupt.
#pragma once

#include <functional>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/services.hpp>

namespace bascule {

/// Whether the calling thread's waits can be interrupted.
bool waits_are_watched() noexcept;

/// The wait was interrupted. The enqueued work continues.
class WaitInterrupted : public Error {
  public:
    using Error::Error;
};

/// Throws WaitInterrupted with a message about the wait for `what`.
[[noreturn]] void throw_wait_interrupted(const char* what);

/// Waits while `query` returns CUDA_ERROR_NOT_READY, then returns the result of `wait`, which no longer blocks. `what`
/// describes the wait in errors. Throws: WaitInterrupted.
DriverResult wait_watched(const char* what, const std::function<DriverResult()>& query,
                          const std::function<DriverResult()>& wait);

/// The same for a watched thread if there is no `query`: `wait` runs on another thread and continues there after an
/// interruption, so it must own what it uses. Call this only if waits_are_watched().
DriverResult wait_watched_elsewhere(const char* what, std::function<DriverResult()> wait);

}  // namespace bascule
