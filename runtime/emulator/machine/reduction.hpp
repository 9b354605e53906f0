// What the handlers of reductions call (machine/operations/async.cpp): a copy that combines, and one value that does.
#pragma once

#include <cstddef>

#include "machine/lanes.hpp"

namespace emulated::machine {

/// Combines elements at the destination with those that are brought: `bytes` of them.
using Reduction = void (*)(std::byte* to, const std::byte* from, std::size_t bytes);

/// A bulk copy of each lane; `reduce` null: a plain one.
const Instruction* begin_bulk_copy(Lanes& s, const Instruction* i, Reduction reduce);
/// The values of the lanes, `bytes` each, and an mbarrier that counts them; null: a store.
const Instruction* begin_remote_write(Lanes& s, const Instruction* i, Reduction reduce, unsigned bytes);

}  // namespace emulated::machine
