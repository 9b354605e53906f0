// Shared by the vectors of matrices.
#pragma once

#include "reference/tensor.hpp"
#include "vectors.hpp"

namespace vectors {

/// Random elements. With `wild` they include infinities, NaNs and numbers of every magnitude.
reference::Matrix some_matrix(Type type, unsigned rows, unsigned columns, bool wild, Random& random);

/// The stored elements of a sparse A, and the matching metadata.
struct Sparsity {
    std::vector<bool> stored;             // [row][k]
    std::vector<std::uint32_t> metadata;  // by lane
    unsigned selector = 0;
};
Sparsity some_sparsity(const reference::Shape& shape, Type type, unsigned selector, Random& random);

/// Products through memory: wmma.load, wmma.mma, wmma.store.
void wmma_vectors(Tally& tally, const std::string& spelling, const Opcode& opcode, Random& random);

}  // namespace vectors
