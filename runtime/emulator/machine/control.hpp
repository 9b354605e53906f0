// Handlers of control flow that other handler files continue with.
#pragma once

#include "machine/lanes.hpp"

namespace emulated::machine {

/// Lanes whose predicate operand[0] is true continue at `immediate`.
const Instruction* branch(Lanes& s, const Instruction* i);

/// Runs the instructions up to `unguard` for the lanes whose predicate is true, or skips them if there are none.
const Instruction* guard(Lanes& s, const Instruction* i);

/// Ends lockstep at `i`, which the first `done` warps have executed.
const Instruction* part_ways(Lanes& s, const Instruction* i, std::uint32_t done = 0);

/// Runs a load or store that looks for a pattern of addresses: once for each warp in lockstep, one after the other.
/// Skips the first `done` warps, which have executed it.
const Instruction* access_one_by_one(Lanes& s, const Instruction* i, std::uint32_t done);

}  // namespace emulated::machine
