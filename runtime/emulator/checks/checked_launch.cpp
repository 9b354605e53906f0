#include "checks/checked_launch.hpp"

#include <utility>

#include "checks/division.hpp"
#include "checks/init.hpp"
#include "checks/races.hpp"

namespace emulated::checks {

CheckedLaunch::CheckedLaunch(const machine::LaunchRequest& request, const LaunchName& launch, Checks checks) {
    if (has(checks, Check::division)) add(make_division_check(request, launch));
    if (has(checks, Check::init)) add(make_init_check(request, launch));
    if (has(checks, Check::shared_races) || has(checks, Check::global_races))
        add(make_race_check(request, launch, checks));
}

void CheckedLaunch::add(std::unique_ptr<machine::Observer> observer) {
    observers_.add(*observer);
    owned_.push_back(std::move(observer));
}

}  // namespace emulated::checks
