// The reports of races between the threads of a grid.
#pragma once

#include <cstdint>

#include "checks/checks.hpp"
#include "checks/order/race_shadow.hpp"

namespace emulated::checks {

/// True for races that correct programs have: guesses of compare-and-swap loops, and those within cooperative groups.
bool is_intended(const program::Code& code, const Accesses& earlier, const Accesses& mine);

/// The finding for two accesses of the four bytes at `at`, an address of global memory or an offset in shared memory.
Finding describe_race(const program::Code& code, const machine::LaunchRequest& request,
                      const Accesses& earlier, const Accesses& mine, std::uint64_t at, bool is_shared);

}  // namespace emulated::checks
