// The checks and the profiler of one launch.
#pragma once

#include "checks/checks.hpp"
#include "machine/observer.hpp"

namespace emulated::checks {

/// The observers of the checks and of the profiler that are on. They report what they found when they are destroyed. `request`
/// and `launch` must outlive them.
machine::Observers make_observers(const machine::LaunchRequest& request, const LaunchName& launch,
                                  Checks checks);

}  // namespace emulated::checks
