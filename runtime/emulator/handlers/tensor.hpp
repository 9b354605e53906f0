// Common parts of the matrix instructions, which need all lanes of the warp. For handler files only.
#pragma once

#include "handlers/access.hpp"
#include "program/table/matrices.hpp"

namespace emulated::machine::BASCULE_ISA {
namespace {

using program::Fragment;
using program::Product;

/// True once all 32 lanes have arrived. Otherwise the group waits for the others, or faults if they can never arrive.
inline bool whole_warp(Lanes& s, const Instruction* i) {
    if (!meet(s, i, full_mask)) return false;
    if (s.mask == full_mask) [[likely]]
        return true;
    fail(s, LaneFault::What::incomplete_warp, s.mask, 0, 0, false, "");
    stopped(s, i);
    return false;
}

/// The k-th register in the instruction's list.
inline std::byte* listed(Lanes& s, const Instruction* i, u32 k) {
    return reinterpret_cast<std::byte*>(lanes_at<u32>(s, s.lists[i->operand[0] + k]));
}

template <class Descriptor>
inline Descriptor descriptor_of(const Instruction* i) {
    return __builtin_bit_cast(Descriptor, i->immediate);
}

}  // namespace
}  // namespace emulated::machine::BASCULE_ISA
