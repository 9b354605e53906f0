// The driver's table with every function in it counted, and one call failing when its turn comes.
#pragma once

#include <string>

#include <bascule/runtime/driver.hpp>

namespace bascule::testing {

/// While it lives, calls of the driver's functions are counted from 0, and the one with number `fails`
/// answers CUDA_ERROR_UNKNOWN and does nothing. What only tells or names (errors, whether a stream is done)
/// is not counted. One at a time, and no other thread calls the driver meanwhile.
class FailingDriver {
  public:
    explicit FailingDriver(int fails);
    ~FailingDriver();
    FailingDriver(const FailingDriver&) = delete;
    FailingDriver& operator=(const FailingDriver&) = delete;

    /// The function that failed; empty when there were not as many calls.
    static const std::string& failed() noexcept;
    /// The driver as it is, for those who look on.
    static const DriverFunctions& real() noexcept;
};

}  // namespace bascule::testing
