// Finds integer divisions by zero, whose result PTX leaves open.
#pragma once

#include <memory>

#include "checks/checks.hpp"
#include "machine/observer.hpp"

namespace emulated::checks {

std::unique_ptr<machine::Observer> make_division_check(const machine::LaunchRequest& request,
                                                       const LaunchName& launch);

}  // namespace emulated::checks
