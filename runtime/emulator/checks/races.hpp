// Finds accesses to shared and global memory by threads of one grid that race: unordered, and at least one of them a write.
#pragma once

#include <memory>

#include "checks/checks.hpp"
#include "machine/observer.hpp"

namespace emulated::checks {

/// For the checks shared_races and global_races, one of which is in `checks`.
std::unique_ptr<machine::Observer> make_race_check(const machine::LaunchRequest& request,
                                                   const LaunchName& launch, Checks checks);

}  // namespace emulated::checks
