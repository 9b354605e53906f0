// How the running group of lanes stops, and how its lanes are gone through: for what is compiled for one
// instruction set alone.
#pragma once

#include <cstdint>

#include "machine/lanes.hpp"

namespace emulated::machine {

inline std::uint32_t index_of(const Lanes& s, const Instruction* i) {
    return static_cast<std::uint32_t>(i - s.code);
}

/// Goes on with `i` in the same call: compilers make a jump of it. What goes back in the text returns to the warp's
/// loop instead, so where they do not, the stack is as deep as the code is long.
inline const Instruction* next([[maybe_unused]] Lanes& s, const Instruction* i) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return i;
#else
    return reinterpret_cast<Handler>(i->handler)(s, i);
#endif
}

/// The group goes on at `pc`, as soon as it is its turn.
inline const Instruction* reselect(Lanes& s, std::uint32_t pc) {
    s.pc = pc;
    s.stop = Stop::reselect;
    return nullptr;
}

inline const Instruction* fault(Lanes& s, const Instruction* i, LaneFault::What what, std::uint32_t lanes,
                                std::uint64_t address = 0) {
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
const Instruction* spent(Lanes& s, const Instruction* i, std::uint32_t next);

template <class T>
T* lanes_at(Lanes& s, std::uint32_t offset) {
    return reinterpret_cast<T*>(s.registers + offset);
}

inline std::uint32_t& predicate_at(Lanes& s, std::uint32_t offset) {
    return *lanes_at<std::uint32_t>(s, offset);
}

/// The bits of the lanes that run are those of `value`.
inline void write_predicate(Lanes& s, std::uint32_t offset, std::uint32_t value) {
    std::uint32_t& d = predicate_at(s, offset);
    d = (d & ~s.mask) | (value & s.mask);
}

template <class Visit>
void each_lane(std::uint32_t mask, Visit&& visit) {
    for (; mask != 0; mask &= mask - 1) visit(static_cast<unsigned>(__builtin_ctz(mask)));
}

/// Whether all lanes are here that the running ones' member masks name; if not, the group parks.
inline bool all_here(Lanes& s, const Instruction* i, std::uint32_t mask_slot) {
    std::uint32_t required = 0;
    const auto* members = lanes_at<std::uint32_t>(s, mask_slot);
    each_lane(s.mask, [&](unsigned l) { required |= members[l]; });
    return meet(s, i, required);
}

}  // namespace emulated::machine
