// The instructions of a kernel, prepared for the check of uninitialised values.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "checks/undefined_bits.hpp"

namespace emulated::checks::values {

/// What the check does with an instruction. Kinds up to `compares` do no more than write registers
/// if the sources are defined.
enum class Kind : std::uint8_t {
    defines,     ///< its results count as defined
    propagates,  ///< its row in the table of propagations says how
    decides,     ///< branch, guard
    compares,    ///< the same with a comparison
    load,
    store,
    atomic,
    copy,      ///< cp.async
    shuffle,   ///< shfl
    exchange,  ///< vote, match, redux
    barrier,   ///< bar
    image,     ///< textures and surfaces
    writes,    ///< writes memory in a way that only its handler knows
    load_argument,
    store_argument,
    copy_argument,
};

/// A place in the register file.
struct Slot {
    std::uint32_t offset = 0;
    std::uint32_t index = 0;  ///< of its mask; 0 for values that are always defined
    std::uint8_t bytes = 0;   ///< per lane; 0 for a predicate
};

/// An instruction, prepared for the check: its results and then its sources are consecutive slots.
struct Step {
    Kind kind = Kind::defines;
    std::uint16_t results = 0, sources = 0;
    std::uint32_t first = 0;
    Propagation how;
};

/// The steps of a kernel's code.
class Plan {
  public:
    explicit Plan(const program::Code& code);

    const Step& operator[](std::uint32_t pc) const { return steps_[pc]; }
    const Slot* slots(const Step& step) const { return slots_.data() + step.first; }
    /// The number of masks.
    std::uint32_t count() const { return count_; }
    /// The mask of a place; 0 if it is always defined, or not used.
    std::uint32_t index_at(std::uint32_t offset) const { return numbers_[offset / 4]; }

  private:
    void add(std::uint32_t pc);
    Slot slot(std::uint32_t offset, std::uint8_t bytes);

    const program::Code& code_;                              ///< owns the plan
    std::unordered_map<std::uint32_t, std::uint8_t> fixed_;  ///< bytes of constants and special registers
    std::vector<std::uint32_t> numbers_;
    std::uint32_t count_ = 1;
    std::vector<Step> steps_;
    std::vector<Slot> slots_;
};

}  // namespace emulated::checks::values
