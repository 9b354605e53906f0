// Makes the checks that observe the instructions of one launch. `request` and `launch` must outlive them. A result may be null:
// the check has nothing to look for.
#pragma once

#include <memory>

#include "checks/checks.hpp"
#include "machine/observer.hpp"

namespace emulated::checks {

using MadeCheck = std::unique_ptr<machine::Observer>;
using Request = machine::LaunchRequest;

/// Integer divisions by zero, whose result PTX leaves open (division.cpp).
MadeCheck make_division_check(const Request& request, const LaunchName& launch);
/// Values that nothing has written and that decide a branch, address memory or leave the kernel (init.cpp).
MadeCheck make_init_check(const Request& request, const LaunchName& launch);
/// Accesses to shared and global memory by threads of one grid that are unordered, and at least one of which writes. For
/// the checks shared_races and global_races, one of which is in `checks` (races.cpp).
MadeCheck make_race_check(const Request& request, const LaunchName& launch, Checks checks);
/// Barriers that some threads of a warp do not reach, and warp operations with wrong masks (sync.cpp).
MadeCheck make_sync_check(const Request& request, const LaunchName& launch);
/// Uses of data that an asynchronous copy or product has not delivered, and writes to data that it still reads
/// (pending_data.cpp).
MadeCheck make_async_check(const Request& request, const LaunchName& launch);
/// Accesses outside of the variable or array that the kernel indexes, where there is other memory (array_bounds.cpp).
MadeCheck make_arrays_check(const Request& request, const LaunchName& launch);
/// Writes to bytes that the same launch reads as read-only memory (global_arrays.cpp).
MadeCheck make_restrict_check(const Request& request, const LaunchName& launch);
/// Arrays that the grid is too small for. Reports when the last thread has ended (global_arrays.cpp).
MadeCheck make_grid_check(const Request& request, const LaunchName& launch);

}  // namespace emulated::checks
