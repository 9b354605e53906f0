// Propagates undefined bits: finds those of a result whose value depends on undefined bits of the sources.
#pragma once

#include <cstdint>
#include <span>

#include "program/code.hpp"

namespace emulated::checks::values {

/// A value of one lane. The bits of `undefined` are 1 where nothing has written the value.
struct LaneValue {
    std::uint64_t bits = 0, undefined = 0;
};

/// An instruction of one lane, of which at least one source is partly undefined.
struct LaneStep {
    const program::Key& key;
    const program::Instruction& instruction;
    std::span<const LaneValue> sources;  ///< those of its list first
    unsigned result = 0;                 ///< the number of the result that is asked for
};

/// How an operation propagates undefined bits.
struct Propagation {
    /// The undefined bits of a result. Bits beyond the width of the result have no meaning.
    std::uint64_t (*undefined)(const LaneStep&) = nullptr;
    /// False if it only moves and masks bits, so that the result may be padding.
    bool computes = true;
};

/// The propagation of an operation that works for each lane; `undefined` is null if its results count as defined.
Propagation propagation_of(const program::Key& key) noexcept;

/// The undefined bits, extended to 64 bits like a value of this type.
std::uint64_t extended(std::uint64_t undefined, ptx::Type type) noexcept;

}  // namespace emulated::checks::values
