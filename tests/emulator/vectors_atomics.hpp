// The parts of the memory vectors that are not plain loads and stores.
#pragma once

#include "vectors.hpp"

namespace vectors {

/// atom and red: alone at an address, and many threads at few.
void atomic_vectors(Tally& tally, const std::string& spelling, const Opcode& opcode, Random& random);

/// cvta, isspacep and prefetch.
void address_vectors(Tally& tally, const std::string& spelling, const Opcode& opcode);

}  // namespace vectors
