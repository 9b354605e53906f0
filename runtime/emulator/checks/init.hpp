// Finds values that nothing has written and that decide a branch, address memory or leave the kernel.
#pragma once

#include <memory>

#include "checks/checks.hpp"
#include "machine/observer.hpp"

namespace emulated::checks {

std::unique_ptr<machine::Observer> make_init_check(const machine::LaunchRequest& request,
                                                   const LaunchName& launch);

}  // namespace emulated::checks
