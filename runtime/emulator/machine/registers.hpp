// Access to registers and lanes, and the jump to the next instruction. Each file that includes it compiles its own copy,
// for its instruction set.
#pragma once

#include "machine/lanes.hpp"

namespace emulated::machine {
namespace {

/// Continues with `i`; compilers turn the call into a jump. Backward branches return to the warp's loop instead, so
/// that the code's length bounds the stack depth if a compiler does not do that.
inline const Instruction* next([[maybe_unused]] Lanes& s, const Instruction* i) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return i;
#else
    return reinterpret_cast<Handler>(i->handler)(s, i);
#endif
}

/// The 32 lanes of a register, for the warp with this register file.
template <class T>
inline T* lanes_in(std::byte* registers, u32 offset) {
    return static_cast<T*>(__builtin_assume_aligned(reinterpret_cast<T*>(registers + offset), 64));
}
template <class T>
inline T* lanes_at(Lanes& s, u32 offset) {
    return lanes_in<T>(s.registers, offset);
}

inline u32& predicate_in(std::byte* registers, u32 offset) {
    return *reinterpret_cast<u32*>(registers + offset);
}
inline u32& predicate_at(Lanes& s, u32 offset) { return predicate_in(s.registers, offset); }

/// Iterates over the lanes of a mask in order: for (const unsigned l : LanesOf{s.mask}).
struct LanesOf {
    u32 left;
    LanesOf begin() const { return *this; }
    u32 end() const { return 0; }
    unsigned operator*() const { return static_cast<unsigned>(__builtin_ctz(left)); }
    void operator++() { left &= left - 1; }
    bool operator!=(u32 none) const { return left != none; }
};

}  // namespace
}  // namespace emulated::machine
