// What an instruction that has just made a predicate goes on with.
#pragma once

#include "machine/lanes.hpp"

namespace emulated::machine {

/// Lanes whose predicate, operand[0], holds go on at `immediate`.
const Instruction* branch(Lanes& s, const Instruction* i);

/// What follows, up to `unguard`, is for the lanes whose predicate holds; nobody's, it is passed over with that.
const Instruction* guard(Lanes& s, const Instruction* i);

}  // namespace emulated::machine
