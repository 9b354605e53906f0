// What handlers go on with.
#pragma once

#include "machine/lanes.hpp"

namespace emulated::machine {

/// Lanes whose predicate, operand[0], holds go on at `immediate`.
const Instruction* branch(Lanes& s, const Instruction* i);

/// What follows, up to `unguard`, is for the lanes whose predicate holds; nobody's, it is passed over with that.
const Instruction* guard(Lanes& s, const Instruction* i);

/// Warps in lockstep part at `i`, which `done` of them have run.
const Instruction* part_ways(Lanes& s, const Instruction* i, std::uint32_t done = 0);

/// Runs a load or store with a pattern for the warps in lockstep, one after another, but for those that have `done` it.
const Instruction* access_one_by_one(Lanes& s, const Instruction* i, std::uint32_t done);

}  // namespace emulated::machine
