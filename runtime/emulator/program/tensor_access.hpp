// The variants of tensor copies and of tensormap.replace, packed into Instruction::immediate.
#pragma once

#include <cstdint>

#include "program/table/flags.hpp"

namespace emulated::program {

struct TensorAccess {
    enum class What : std::uint8_t { load, store, prefetch };
    What what = What::load;
    std::uint8_t rank = 1;
    bool im2col = false;  ///< loads and prefetches then have rank - 2 offsets after the coordinates
};

struct TensorMapField {
    Flag field = Flag::rank;
    Flag space = Flag::to;  ///< global or shared; otherwise generic
    std::uint8_t ordinal = 0;
};

}  // namespace emulated::program
