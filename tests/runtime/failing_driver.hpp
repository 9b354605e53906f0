// The driver's table with every function in it counted, and one call failing when its turn comes.
#pragma once

#include <string>
#include <string_view>

#include <bascule/runtime/driver/driver.hpp>

namespace bascule::testing {

/// While it lives, each thread's calls of the driver's functions are counted, and the one that the thread
/// asked for answers CUDA_ERROR_ILLEGAL_STATE and does nothing. What only names errors is not counted. One at a
/// time; made and destroyed while no other thread calls the driver.
class FailingDriver {
  public:
    FailingDriver();
    /// With fail(number) for the calling thread.
    explicit FailingDriver(int number) : FailingDriver() { fail(number); }
    ~FailingDriver();
    FailingDriver(const FailingDriver&) = delete;
    FailingDriver& operator=(const FailingDriver&) = delete;

    /// Of the calling thread's calls from now on, the one with this number (from 0) fails: of all functions,
    /// or of the one that is named. A negative number: none.
    static void fail(int number, std::string_view function = {});
    /// The function that failed in the calling thread; empty when there were not as many calls.
    static const std::string& failed() noexcept;
    /// The calling thread's calls of a function since `fail`.
    static int calls_of(std::string_view function);
    /// The driver as it is, for those who look on.
    static const DriverFunctions& real() noexcept;
};

}  // namespace bascule::testing
