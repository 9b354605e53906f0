// Functions with which handlers stop the running group of lanes and write results. For files that are compiled for only
// one instruction set.
#pragma once

#include "machine/registers.hpp"

namespace emulated::machine {

inline u32 index_of(const Lanes& s, const Instruction* i) { return static_cast<u32>(i - s.code); }

/// Stops the running group. It continues at `pc` when it is selected again.
inline const Instruction* reselect(Lanes& s, u32 pc) {
    s.pc = pc;
    s.stop = Stop::reselect;
    return nullptr;
}

inline const Instruction* fault(Lanes& s, const Instruction* i, LaneFault::What what, u32 lanes,
                                u64 address = 0) {
    s.fault = {what, lanes, index_of(s, i), address, 0, false, ""};
    s.stop = Stop::fault;
    return nullptr;
}

/// A fault of all active lanes.
inline const Instruction* fault(Lanes& s, const Instruction* i, LaneFault::What what) {
    return fault(s, i, what, s.mask);
}

/// Returns `i`, or null with a fault if the block has run too long or is no longer wanted.
const Instruction* watched(Lanes& s, const Instruction* i);

/// Called when the budget of backward branches and calls is used up at `i`. Continues at `next`, unless the watchdog
/// stops the block or another group or warp must run first.
const Instruction* spent(Lanes& s, const Instruction* i, u32 next);

namespace {

/// Writes the bits of the active lanes.
inline void write_predicate(Lanes& s, u32 offset, u32 value) {
    u32& d = predicate_at(s, offset);
    d = (d & ~s.mask) | (value & s.mask);
}

/// Writes a register in the active lanes.
template <class T>
void write_lanes(Lanes& s, u32 offset, const T (&values)[32]) {
    T* d = lanes_at<T>(s, offset);
    for (const unsigned l : LanesOf{s.mask}) d[l] = values[l];
}

/// The lanes of `mask` for which `holds` is true.
template <class Holds>
u32 lanes_where(u32 mask, const Holds& holds) {
    u32 made = 0;
    for (const unsigned l : LanesOf{mask}) made |= static_cast<u32>(holds(l)) << l;
    return made;
}

/// True if all lanes named in the active lanes' member masks have arrived; otherwise the group parks.
inline bool all_here(Lanes& s, const Instruction* i, u32 mask_slot) {
    u32 required = 0;
    const u32* members = lanes_at<u32>(s, mask_slot);
    for (const unsigned l : LanesOf{s.mask}) required |= members[l];
    return meet(s, i, required);
}

}  // namespace
}  // namespace emulated::machine
