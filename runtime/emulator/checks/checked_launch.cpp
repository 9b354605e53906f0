#include "checks/checked_launch.hpp"

#include <utility>

#include "checks/division.hpp"
#include "checks/profile.hpp"

namespace emulated::checks {

CheckedLaunch::CheckedLaunch(const machine::LaunchRequest& request, const LaunchName& launch, Checks checks) {
    if (has(checks, Check::division)) add(make_division_check(request, launch));
    if (auto profiler = make_profiler(request, launch)) add(std::move(profiler));
}

void CheckedLaunch::add(std::unique_ptr<machine::Observer> observer) {
    observers_.add(*observer);
    owned_.push_back(std::move(observer));
}

}  // namespace emulated::checks
