// How the running group of lanes stops, and what its lanes write: for what is compiled for one instruction set alone.
#pragma once

#include "machine/registers.hpp"

namespace emulated::machine {

inline u32 index_of(const Lanes& s, const Instruction* i) { return static_cast<u32>(i - s.code); }

/// The group goes on at `pc`, as soon as it is its turn.
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

/// A fault of every lane that runs.
inline const Instruction* fault(Lanes& s, const Instruction* i, LaneFault::What what) {
    return fault(s, i, what, s.mask);
}

/// `i`, unless the block has run for too long, or is no longer wanted: then the fault that says so.
const Instruction* watched(Lanes& s, const Instruction* i);

/// The budget of backward branches and calls is spent at `i`: goes on at `next`, unless the watchdog objects or it is
/// another group's turn.
const Instruction* spent(Lanes& s, const Instruction* i, u32 next);

namespace {

/// The bits of the lanes that run are those of `value`.
inline void write_predicate(Lanes& s, u32 offset, u32 value) {
    u32& d = predicate_at(s, offset);
    d = (d & ~s.mask) | (value & s.mask);
}

/// Writes a register where lanes run.
template <class T>
void write_lanes(Lanes& s, u32 offset, const T (&values)[32]) {
    T* d = lanes_at<T>(s, offset);
    for (const unsigned l : LanesOf{s.mask}) d[l] = values[l];
}

/// The lanes of a mask for which `holds`.
template <class Holds>
u32 lanes_where(u32 mask, const Holds& holds) {
    u32 made = 0;
    for (const unsigned l : LanesOf{mask}) made |= static_cast<u32>(holds(l)) << l;
    return made;
}

/// Whether all lanes are here that the running ones' member masks name; if not, the group parks.
inline bool all_here(Lanes& s, const Instruction* i, u32 mask_slot) {
    u32 required = 0;
    const u32* members = lanes_at<u32>(s, mask_slot);
    for (const unsigned l : LanesOf{s.mask}) required |= members[l];
    return meet(s, i, required);
}

}  // namespace
}  // namespace emulated::machine
