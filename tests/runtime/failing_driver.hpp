// A driver table that counts calls and makes a selected one fail.
#pragma once

#include <string>
#include <string_view>

#include <bascule/runtime/driver/driver.hpp>

namespace bascule::testing {

/// During its lifetime, the driver calls of each thread are counted, and the call that the thread selected does nothing
/// and returns CUDA_ERROR_ILLEGAL_STATE. Functions that only name errors are not counted. Only one may exist; construct
/// and destroy it while no other thread calls the driver.
class FailingDriver {
  public:
    FailingDriver();
    /// Also calls fail(number) for the calling thread.
    explicit FailingDriver(int number) : FailingDriver() { fail(number); }
    ~FailingDriver();
    FailingDriver(const FailingDriver&) = delete;
    FailingDriver& operator=(const FailingDriver&) = delete;

    /// Makes one of the calling thread's later calls fail: the call with this number (from 0) of all functions, or of
    /// the named one. With a negative number no call fails.
    static void fail(int number, std::string_view function = {});
    /// The function that failed in the calling thread; empty if there were too few calls.
    static const std::string& failed() noexcept;
    /// How often the calling thread has called a function since `fail`.
    static int calls_of(std::string_view function);
    /// The unmodified driver, for calls that must not be counted.
    static const DriverFunctions& real() noexcept;
};

}  // namespace bascule::testing
