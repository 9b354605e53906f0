#include "checks/launch_observers.hpp"

#include "checks/kernel_checks.hpp"
#include "checks/profile.hpp"

namespace emulated::checks {

machine::Observers make_observers(const machine::LaunchRequest& request, const LaunchName& launch,
                                  Checks checks) {
    machine::Observers made;
    if (has(checks, Check::restrict_)) made.add(make_restrict_check(request, launch));
    if (has(checks, Check::grid)) made.add(make_grid_check(request, launch));
    if (has(checks, Check::division)) made.add(make_division_check(request, launch));
    if (has(checks, Check::init)) made.add(make_init_check(request, launch));
    if (has(checks, Check::shared_races) || has(checks, Check::global_races))
        made.add(make_race_check(request, launch, checks));
    if (has(checks, Check::sync)) made.add(make_sync_check(request, launch));
    if (has(checks, Check::async)) made.add(make_async_check(request, launch));
    if (has(checks, Check::arrays)) made.add(make_arrays_check(request, launch));
    made.add(make_profiler(request, launch));
    return made;
}

}  // namespace emulated::checks
