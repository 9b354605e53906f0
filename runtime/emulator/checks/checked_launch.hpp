// The checks and the profiler of one launch.
#pragma once

#include <memory>
#include <vector>

#include "checks/checks.hpp"
#include "machine/observer.hpp"

namespace emulated::checks {

/// Creates the observers of the checks and of the profiler that are on, and reports what they found when it ends. Used by one thread.
class CheckedLaunch {
  public:
    /// `request` and `launch` must outlive it.
    CheckedLaunch(const machine::LaunchRequest& request, const LaunchName& launch, Checks checks);

    /// Null if no check observes this launch.
    machine::Observer* observer() noexcept { return owned_.empty() ? nullptr : &observers_; }

  private:
    void add(std::unique_ptr<machine::Observer> observer);

    std::vector<std::unique_ptr<machine::Observer>> owned_;
    machine::Observers observers_;
};

}  // namespace emulated::checks
