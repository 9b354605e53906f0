// The parts of the memory vectors that are not plain loads and stores.
#pragma once

#include "vectors.hpp"

namespace vectors {

/// atom and red: one thread at an address, and many threads at few addresses.
void atomic_vectors(Tally& tally, const std::string& spelling, const Opcode& opcode, Random& random);

/// Returns the value in memory after the atomic operation, as bits of the opcode's type. `b` is the operand. For .cas,
/// memory is compared with `b`, and `c` is the new value.
Bits after_atomic(const Opcode& opcode, Bits old, Bits b, Bits c);

/// cvta, isspacep and prefetch.
void address_vectors(Tally& tally, const std::string& spelling, const Opcode& opcode);

}  // namespace vectors
