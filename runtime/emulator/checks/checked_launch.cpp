#include "checks/checked_launch.hpp"

#include <utility>

#include "checks/kernel_checks.hpp"
#include "checks/profile.hpp"

namespace emulated::checks {

CheckedLaunch::CheckedLaunch(const machine::LaunchRequest& request, const LaunchName& launch, Checks checks) {
    if (has(checks, Check::restrict_)) add(make_restrict_check(request, launch));
    if (has(checks, Check::grid)) add(make_grid_check(request, launch));
    if (has(checks, Check::division)) add(make_division_check(request, launch));
    if (has(checks, Check::init)) add(make_init_check(request, launch));
    if (has(checks, Check::shared_races) || has(checks, Check::global_races))
        add(make_race_check(request, launch, checks));
    if (has(checks, Check::sync)) add(make_sync_check(request, launch));
    if (has(checks, Check::async)) add(make_async_check(request, launch));
    if (has(checks, Check::arrays)) add(make_arrays_check(request, launch));
    if (auto profiler = make_profiler(request, launch)) add(std::move(profiler));
}

void CheckedLaunch::add(std::unique_ptr<machine::Observer> observer) {
    if (observer == nullptr) return;  // it has nothing to look for
    observers_.add(*observer);
    owned_.push_back(std::move(observer));
}

}  // namespace emulated::checks
