// Memory accesses of a warp: locate() translates the lanes' addresses into host addresses and checks all 32 at once.
// Compiled once for each instruction set, like the handlers that include it.
#pragma once

#include "handlers/half.hpp"
#include "machine/places.hpp"
#include "races/access_log.hpp"

namespace emulated::machine::BASCULE_ISA {
namespace {

// The displacement that is added to the lanes' addresses. Accesses of shared memory have no base register.
template <class A, Space Where = Space::generic>
inline A displacement_of(std::byte* registers, const Instruction* i) {
    const A displacement = static_cast<A>(i->immediate);
    if constexpr (Where == Space::shared) return displacement;
    return i->bits & Instruction::has_base
               ? static_cast<A>(displacement + *lanes_in<A>(registers, i->operand[2]))
               : displacement;
}

// Reads the addresses into s.offset. Inactive lanes get the first active lane's address, so that they pass every check.
inline void read_addresses(Lanes& s, const Instruction* i, u32 slot) {
    if (i->bits & Instruction::narrow) {
        const u32* a = lanes_at<u32>(s, slot);
        const u32 add = displacement_of<u32>(s.registers, i);
        BASCULE_LANE_LOOP
        for (unsigned l = 0; l < 32; ++l) s.offset[l] = a[l] + add;
    } else {
        const u64* a = lanes_at<u64>(s, slot);
        const u64 add = displacement_of<u64>(s.registers, i);
        BASCULE_LANE_LOOP
        for (unsigned l = 0; l < 32; ++l) s.offset[l] = a[l] + add;
    }
    if (s.mask == full_mask) return;
    const u64 first = s.offset[__builtin_ctz(s.mask)];
    const u32 mask = s.mask;
    BASCULE_LANE_LOOP
    for (unsigned l = 0; l < 32; ++l) {
        const u64 skip = static_cast<u64>((mask >> l) & 1u) - 1u;
        s.offset[l] = (s.offset[l] & ~skip) | (first & skip);
    }
}

// Makes the addresses relative to `base`; returns false if one access leaves [base, base + bytes).
inline bool within(Lanes& s, u64 base, u64 bytes, u32 access) {
    const u64 limit = bytes - access;
    u64 outside = bytes < access ? ~0ull : 0;
    BASCULE_LANE_LOOP
    for (unsigned l = 0; l < 32; ++l) {
        const u64 offset = s.offset[l] - base;
        outside |= offset | (limit - offset);
    }
    if (static_cast<s64>(outside) < 0) return false;
    BASCULE_LANE_LOOP
    for (unsigned l = 0; l < 32; ++l) s.offset[l] -= base;
    return true;
}

__attribute__((noinline)) bool fail(Lanes& s, LaneFault::What what, u32 lanes, u64 address, u32 bytes,
                                    bool write, const char* space) {
    s.fault = {what, lanes, 0, address, bytes, write, space};  // `stopped` sets the position
    s.stop = Stop::fault;
    return false;
}

const Instruction* stopped(Lanes& s, const Instruction* i) {
    s.fault.pc = static_cast<u32>(i - s.code);
    return nullptr;
}

races::Access access_of(const Instruction* i, bool write) {
    if (i->bits & Instruction::strong)
        return write ? races::Access::strong_write : races::Access::strong_read;
    return write ? races::Access::write : races::Access::read;
}

// Logs the lanes' accesses for the search for races. Shared, local and parameter memory are left out because other
// operations cannot access them; their windows are adjacent.
__attribute__((noinline)) void note_lanes(Lanes& s, const Instruction* i, const u64* addresses, u32 access,
                                          bool write) {
    s.log->add_lanes(addresses, s.mask, access, access_of(i, write), program::shared_window,
                     program::shared_window + 3 * program::window_bytes);
}

// Translates lane by lane if not all addresses are in one place; finds the lanes that fault.
__attribute__((noinline)) bool locate_each(Lanes& s, Space space, u32 access, bool write) {
    u32 wrong = 0;
    u64 address = 0;
    bool read_only = false;
    for (unsigned l = 0; l < 32; ++l) {
        const u64 at = s.offset[l];
        const u64 place = place_of(s, space, l, at, access, write, read_only);
        if (place == 0) {
            if (wrong == 0) address = at;
            wrong |= 1u << l;
        }
        s.offset[l] = place;
    }
    s.base = 0;
    wrong &= s.mask;
    if (wrong == 0) return true;
    return fail(s, read_only ? LaneFault::What::read_only : LaneFault::What::out_of_bounds, wrong, address,
                access, write, name_of(space));
}

bool locate_global(Lanes& s, AllocationCache& cache, u32 access, bool write) {
    if (within(s, cache.base, cache.bytes, access) && !(write && cache.read_only)) {
        s.base = reinterpret_cast<std::uintptr_t>(cache.host);
        return true;
    }
    return false;
}

// After a cache miss, caches the allocation of the first active lane. Allocations of kernels are not cached, because a
// kernel may free them before the next access.
__attribute__((noinline)) bool learn_global(Lanes& s, AllocationCache& cache, u32 access, bool write) {
    const memory::Allocation* found = s.memory->find(s.offset[__builtin_ctz(s.mask)]);
    if (!found || (write && found->read_only)) return false;
    if (found->kind == memory::Allocation::Kind::kernel_heap) return false;
    remember(cache, *found);
    return locate_global(s, cache, access, write);
}

// Checks that the addresses in s.offset are multiples of `alignment`; otherwise sets a fault and returns false.
inline bool aligned(Lanes& s, Space space, u32 access, u32 alignment, bool write) {
    u64 low = 0;
    BASCULE_LANE_LOOP
    for (unsigned l = 0; l < 32; ++l) low |= s.offset[l];
    if ((low & (alignment - 1)) == 0) [[likely]]
        return true;
    u32 wrong = 0;
    for (unsigned l = 0; l < 32; ++l) wrong |= u32((s.offset[l] & (alignment - 1)) != 0) << l;
    wrong &= s.mask;
    return fail(s, LaneFault::What::misaligned, wrong, s.offset[__builtin_ctz(wrong)], access, write,
                name_of(space));
}

template <Space Where>
bool locate(Lanes& s, const Instruction* i, u32 slot, u32 access, u32 alignment, bool write) {
    read_addresses(s, i, slot);
    if (!aligned(s, Where, access, alignment, write)) return false;
    if constexpr (Where == Space::shared) {
        if (within(s, program::shared_window, s.shared_bytes, access)) {
            s.base = reinterpret_cast<std::uintptr_t>(s.shared);
            return true;
        }
        return locate_each(s, Where, access, write);
    } else if constexpr (Where == Space::local) {
        if (!within(s, program::local_window, s.local_bytes, access))
            return locate_each(s, Where, access, write);
        s.base = reinterpret_cast<std::uintptr_t>(s.local);
        const u64 stride = s.local_bytes;
        BASCULE_LANE_LOOP
        for (unsigned l = 0; l < 32; ++l) s.offset[l] += l * stride;
        return true;
    } else if constexpr (Where == Space::param) {
        return locate_each(s, Where, access, write);
    } else {
        if (s.log != nullptr) [[unlikely]]
            note_lanes(s, i, s.offset, access, write);
        AllocationCache& cache = s.caches[i->extra];
        if (locate_global(s, cache, access, write)) return true;
        if constexpr (Where == Space::generic) {
            const u64 first = s.offset[__builtin_ctz(s.mask)];
            if (first - program::shared_window < 3 * program::window_bytes)
                return locate_each(s, Where, access, write);
        }
        return learn_global(s, cache, access, write) || locate_each(s, Where, access, write);
    }
}

}  // namespace
}  // namespace emulated::machine::BASCULE_ISA
