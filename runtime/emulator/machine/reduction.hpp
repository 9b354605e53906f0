// Asynchronous reductions (machine/operations/async.cpp): bulk copies and single values that combine with the destination.
#pragma once

#include <cstddef>

#include "machine/lanes.hpp"

namespace emulated::machine {

/// Combines `bytes` of elements at the destination with those of the source.
using Reduction = void (*)(std::byte* to, const std::byte* from, std::size_t bytes);

/// Begins a bulk copy for each lane; a plain copy if `reduce` is null.
const Instruction* begin_bulk_copy(Lanes& s, const Instruction* i, Reduction reduce);
/// Writes the values of the lanes, `bytes` each, and signals an mbarrier; a plain store if `reduce` is null.
const Instruction* begin_remote_write(Lanes& s, const Instruction* i, Reduction reduce, unsigned bytes);

}  // namespace emulated::machine
