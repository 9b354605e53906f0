// Asynchronous reductions (machine/operations/async.cpp): bulk copies and single values that combine with the destination.
#pragma once

#include <cstddef>

#include "machine/lanes.hpp"
#include "memory/tensor_element.hpp"

namespace emulated::machine {

/// Combines `bytes` of elements at the destination with those of the source.
using Reduction = void (*)(std::byte* to, const std::byte* from, std::size_t bytes);

/// The reductions of one operation by element type; null for a type that does not have it.
struct TensorReductions {
    Reduction of[static_cast<std::size_t>(memory::TensorElement::count)];
};

/// Begins the copy of a tile for each lane (machine/operations/tensor_copies.cpp); a plain copy if `reductions` is null.
const Instruction* begin_tensor_copy(Lanes& s, const Instruction* i, const TensorReductions* reductions);
/// Begins a bulk copy for each lane; a plain copy if `reduce` is null.
const Instruction* begin_bulk_copy(Lanes& s, const Instruction* i, Reduction reduce);
/// Writes the values of the lanes, `bytes` each, and signals an mbarrier; a plain store if `reduce` is null.
const Instruction* begin_remote_write(Lanes& s, const Instruction* i, Reduction reduce, unsigned bytes);

}  // namespace emulated::machine
