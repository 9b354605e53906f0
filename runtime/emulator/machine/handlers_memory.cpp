// Loads, stores and atomics. locate() turns the lanes' addresses into places in this process, all 32 checked
// at once; the copying afterwards knows three patterns: consecutive, the same for all, anything else.
#include "machine/half.hpp"

namespace emulated::machine::BASCULE_ISA {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s64 = std::int64_t;

enum class Space : std::uint8_t { generic, global, shared, local, param };

constexpr const char* name_of(Space space) {
    switch (space) {
        case Space::global:
            return "global";
        case Space::shared:
            return "shared";
        case Space::local:
            return "local";
        case Space::param:
            return "param";
        default:
            return "generic";
    }
}

// Addresses into s.offset. Inactive lanes get the first active one's, so that they pass every check.
inline void read_addresses(Lanes& s, const Instruction* i, u32 slot) {
    const u64 displacement = static_cast<u64>(i->immediate);
    if (i->bits & Instruction::narrow) {
        const u32* a = lanes_at<u32>(s, slot);
        const u32 add = static_cast<u32>(displacement);
        BASCULE_LANE_LOOP
        for (unsigned l = 0; l < 32; ++l) s.offset[l] = a[l] + add;
    } else {
        const u64* a = lanes_at<u64>(s, slot);
        BASCULE_LANE_LOOP
        for (unsigned l = 0; l < 32; ++l) s.offset[l] = a[l] + displacement;
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

// Makes the addresses relative to `base`; false when one access leaves [base, base + bytes).
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
    s.fault.what = what;
    s.fault.lanes = lanes;
    s.fault.address = address;
    s.fault.bytes = bytes;
    s.fault.write = write;
    s.fault.space = space;
    s.stop = Stop::fault;
    return false;
}

const Instruction* stopped(Lanes& s, const Instruction* i) {
    s.fault.pc = static_cast<u32>(i - s.code);
    return nullptr;
}

// Where one lane's access lies, or 0. Local memory is a thread's own.
u64 place_of(Lanes& s, Space space, unsigned lane, u64 address, u32 access, bool write, bool& read_only) {
    const auto window = [&](u64 start, u64 bytes, const std::byte* host) -> u64 {
        const u64 offset = address - start;
        if (offset > bytes || bytes - offset < access) return 0;
        return reinterpret_cast<u64>(host) + offset;
    };
    const bool generic = space == Space::generic;
    if (space == Space::shared || (generic && address - program::shared_window < program::window_bytes)) {
        return window(program::shared_window, s.shared_bytes, s.shared);
    }
    if (space == Space::local || (generic && address - program::local_window < program::window_bytes)) {
        return window(program::local_window, s.local_bytes, s.local + lane * s.local_bytes);
    }
    if (space == Space::param || (generic && address - program::param_window < program::window_bytes)) {
        if (write) {
            read_only = true;
            return 0;
        }
        return window(program::param_window, s.parameter_bytes, s.parameters);
    }
    const memory::Allocation* found = s.memory->find(address);
    if (!found) return 0;
    const u64 offset = address - found->base;
    if (offset > found->bytes || found->bytes - offset < access) return 0;
    if (write && found->read_only) {
        read_only = true;
        return 0;
    }
    return reinterpret_cast<u64>(found->host) + offset;
}

// Lane by lane, when they do not all lie in one place; tells which lanes are wrong.
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

// A cache that misses learns the allocation of the first active lane.
__attribute__((noinline)) bool learn_global(Lanes& s, AllocationCache& cache, u32 access, bool write) {
    const memory::Allocation* found = s.memory->find(s.offset[__builtin_ctz(s.mask)]);
    if (!found || (write && found->read_only)) return false;
    cache = {found->base, found->bytes, found->host, found->read_only};
    return locate_global(s, cache, access, write);
}

template <Space Where>
bool locate(Lanes& s, const Instruction* i, u32 slot, u32 access, u32 alignment, bool write) {
    read_addresses(s, i, slot);
    u64 low = 0;
    BASCULE_LANE_LOOP
    for (unsigned l = 0; l < 32; ++l) low |= s.offset[l];
    if (low & (alignment - 1)) {
        u32 wrong = 0;
        for (unsigned l = 0; l < 32; ++l) wrong |= u32((s.offset[l] & (alignment - 1)) != 0) << l;
        wrong &= s.mask;
        return fail(s, LaneFault::What::misaligned, wrong, s.offset[__builtin_ctz(wrong)], access, write,
                    name_of(Where));
    }
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

enum class Pattern : std::uint8_t { scattered, consecutive, uniform };

inline Pattern pattern_of(const Lanes& s, u32 access) {
    const u64 first = s.offset[0];
    u64 same = 0, next = 0;
    BASCULE_LANE_LOOP
    for (unsigned l = 0; l < 32; ++l) {
        const u64 distance = s.offset[l] - first;
        same |= distance;
        next |= distance - static_cast<u64>(l) * access;
    }
    return next == 0 ? Pattern::consecutive : same == 0 ? Pattern::uniform : Pattern::scattered;
}

template <class M>
inline M read_at(std::uintptr_t at) {
    M v;
    std::memcpy(&v, reinterpret_cast<const void*>(at), sizeof v);
    return v;
}
template <class M>
inline void write_at(std::uintptr_t at, M v) {
    std::memcpy(reinterpret_cast<void*>(at), &v, sizeof v);
}

// The common cases, recognised without filling s.offset: a full warp at consecutive addresses, or all at one.
// Gives the place of lane 0 when the whole extent lies in the memory this instruction touched last, else
// null.
template <Space Where, class M>
inline std::byte* place_at_once(Lanes& s, const Instruction* i, u32 slot, bool write, Pattern& pattern) {
    u64 same = 0, next = 0, first = 0;
    if (i->bits & Instruction::narrow) {
        const u32* a = lanes_at<u32>(s, slot);
        const u32 start = a[0];
        u32 same32 = 0, next32 = 0;
        BASCULE_LANE_LOOP
        for (u32 l = 0; l < 32; ++l) {
            const u32 distance = a[l] - start;
            same32 |= distance;
            next32 |= distance - l * static_cast<u32>(sizeof(M));
        }
        same = same32;
        next = next32;
        first = static_cast<u32>(start + static_cast<u32>(i->immediate));
    } else {
        const u64* a = lanes_at<u64>(s, slot);
        const u64 start = a[0];
        BASCULE_LANE_LOOP
        for (u64 l = 0; l < 32; ++l) {
            const u64 distance = a[l] - start;
            same |= distance;
            next |= distance - l * sizeof(M);
        }
        first = start + static_cast<u64>(i->immediate);
    }
    if (next == 0)
        pattern = Pattern::consecutive;
    else if (same == 0)
        pattern = Pattern::uniform;
    else
        return nullptr;
    if (first % sizeof(M) != 0) return nullptr;
    const u64 extent = next == 0 ? 32 * sizeof(M) : sizeof(M);
    const auto inside = [&](u64 base, u64 bytes, std::byte* host) -> std::byte* {
        const u64 offset = first - base;
        return offset <= bytes && bytes - offset >= extent ? host + offset : nullptr;
    };
    if constexpr (Where == Space::shared) return inside(program::shared_window, s.shared_bytes, s.shared);
    if constexpr (Where == Space::global || Where == Space::generic) {
        const AllocationCache& cache = s.caches[i->extra];
        return write && cache.read_only ? nullptr : inside(cache.base, cache.bytes, cache.host);
    }
    return nullptr;
}

// A full warp that reads shared memory anywhere, by 32-bit addresses: checked in 32 bits, then read lane by
// lane.
template <class M, class R>
inline bool load_shared(Lanes& s, const Instruction* i, R* d) {
    if (s.shared_bytes < sizeof(M)) return false;
    const u32* a = lanes_at<u32>(s, i->operand[1]);
    const u32 base = static_cast<u32>(program::shared_window) - static_cast<u32>(i->immediate);
    const u32 limit = static_cast<u32>(s.shared_bytes - sizeof(M));
    alignas(64) u32 offset[32];
    u32 outside = 0, low = 0;
    BASCULE_LANE_LOOP
    for (unsigned l = 0; l < 32; ++l) {
        offset[l] = a[l] - base;
        outside |= offset[l] | (limit - offset[l]);
        low |= offset[l];
    }
    if (static_cast<std::int32_t>(outside) < 0 || low % sizeof(M) != 0) return false;
    const std::byte* shared = s.shared;
#if defined(__AVX2__)
    if constexpr (sizeof(M) == 4 && sizeof(R) == 4) {
        for (unsigned k = 0; k < 32; k += 8) {
            const __m256i where = _mm256_load_si256(reinterpret_cast<const __m256i*>(offset + k));
            _mm256_store_si256(reinterpret_cast<__m256i*>(d + k),
                               _mm256_i32gather_epi32(reinterpret_cast<const int*>(shared), where, 1));
        }
        return true;
    }
#endif
    for (unsigned l = 0; l < 32; ++l) {
        M v;
        std::memcpy(&v, shared + offset[l], sizeof v);
        d[l] = static_cast<R>(v);
    }
    return true;
}

// A value in memory of type M, in a register of type R: extended by M's sign.
template <class M, class R>
inline void read_lanes(Lanes& s, R* r, Pattern pattern, u32 displacement) {
    const std::uintptr_t base = s.base + displacement;
    if (pattern == Pattern::consecutive) {
        const std::uintptr_t at = base + s.offset[0];
        alignas(64) M values[32];
        std::memcpy(values, reinterpret_cast<const void*>(at), sizeof values);
        BASCULE_LANE_LOOP
        for (unsigned l = 0; l < 32; ++l) r[l] = static_cast<R>(values[l]);
    } else if (pattern == Pattern::uniform) {
        const R v = static_cast<R>(read_at<M>(base + s.offset[0]));
        BASCULE_LANE_LOOP
        for (unsigned l = 0; l < 32; ++l) r[l] = v;
    } else {
        for (unsigned l = 0; l < 32; ++l) r[l] = static_cast<R>(read_at<M>(base + s.offset[l]));
    }
}

template <Space Where, class M, class R>
const Instruction* load(Lanes& s, const Instruction* i) {
    const u32 count = i->count;
    if (count == 1 && s.mask == full_mask) {
        Pattern pattern{};
        if (const std::byte* at = place_at_once<Where, M>(s, i, i->operand[1], false, pattern)) {
            s.base = reinterpret_cast<std::uintptr_t>(at);
            s.offset[0] = 0;
            read_lanes<M>(s, lanes_at<R>(s, i->operand[0]), pattern, 0);
            return i + 1;
        }
        if constexpr (Where == Space::shared) {
            if ((i->bits & Instruction::narrow) && load_shared<M>(s, i, lanes_at<R>(s, i->operand[0])))
                return i + 1;
        }
    }
    if (!locate<Where>(s, i, i->operand[1], sizeof(M) * count, sizeof(M) * count, false))
        return stopped(s, i);
    const Pattern pattern = pattern_of(s, count == 1 ? sizeof(M) : 0);  // of vectors only: all the same
    for (u32 k = 0; k < count; ++k) {
        R* d = lanes_at<R>(s, count == 1 ? i->operand[0] : s.lists[i->operand[0] + k]);
        if (s.mask == full_mask) {
            read_lanes<M>(s, d, count > 1 && pattern == Pattern::consecutive ? Pattern::uniform : pattern,
                          k * sizeof(M));
        } else {
            alignas(64) R r[32];
            read_lanes<M>(s, r, count > 1 && pattern == Pattern::consecutive ? Pattern::uniform : pattern,
                          k * sizeof(M));
            blend(d, r, s.mask);
        }
    }
    return i + 1;
}

template <Space Where, class M, class R>
const Instruction* store(Lanes& s, const Instruction* i) {
    const u32 count = i->count;
    if (count == 1 && s.mask == full_mask) {
        Pattern pattern{};
        std::byte* at = place_at_once<Where, M>(s, i, i->operand[1], true, pattern);
        if (at && pattern == Pattern::consecutive) {
            const R* a = lanes_at<R>(s, i->operand[0]);
            alignas(64) M values[32];
            BASCULE_LANE_LOOP
            for (unsigned l = 0; l < 32; ++l) values[l] = static_cast<M>(a[l]);
            std::memcpy(at, values, sizeof values);
            return i + 1;
        }
    }
    if (!locate<Where>(s, i, i->operand[1], sizeof(M) * count, sizeof(M) * count, true)) return stopped(s, i);
    for (u32 k = 0; k < count; ++k) {
        const R* a = lanes_at<R>(s, count == 1 ? i->operand[0] : s.lists[i->operand[0] + k]);
        if (s.mask == full_mask) {
            for (unsigned l = 0; l < 32; ++l)
                write_at(s.base + s.offset[l] + k * sizeof(M), static_cast<M>(a[l]));
        } else {
            for (u32 left = s.mask; left; left &= left - 1) {
                const unsigned l = static_cast<unsigned>(__builtin_ctz(left));
                write_at(s.base + s.offset[l] + k * sizeof(M), static_cast<M>(a[l]));
            }
        }
    }
    return i + 1;
}

// --- parameters
// ----------------------------------------------------------------------------------------------------

template <class M, class R>
const Instruction* load_parameter(Lanes& s, const Instruction* i) {
    M v;
    std::memcpy(&v, s.parameters + i->immediate, sizeof v);
    R* d = lanes_at<R>(s, i->operand[0]);
    const R value = static_cast<R>(v);
    if (s.write_mask == full_mask) {
        BASCULE_LANE_LOOP
        for (unsigned l = 0; l < 32; ++l) d[l] = value;
    } else {
        alignas(64) R r[32];
        BASCULE_LANE_LOOP
        for (unsigned l = 0; l < 32; ++l) r[l] = value;
        blend(d, r, s.write_mask);
    }
    return i + 1;
}
template <class M, class R>
const Instruction* load_argument(Lanes& s, const Instruction* i) {
    const std::byte* from = s.registers + i->operand[1] + i->immediate;
    alignas(64) R r[32];
    for (unsigned l = 0; l < 32; ++l) {
        M v;
        std::memcpy(&v, from + l * i->extra, sizeof v);
        r[l] = static_cast<R>(v);
    }
    blend(lanes_at<R>(s, i->operand[0]), r, s.write_mask);
    return i + 1;
}
template <class M, class R>
const Instruction* store_argument(Lanes& s, const Instruction* i) {
    std::byte* to = s.registers + i->operand[0] + i->immediate;
    const R* a = lanes_at<R>(s, i->operand[1]);
    for (u32 left = s.mask; left; left &= left - 1) {
        const unsigned l = static_cast<unsigned>(__builtin_ctz(left));
        const M v = static_cast<M>(a[l]);
        std::memcpy(to + l * i->extra, &v, sizeof v);
    }
    return i + 1;
}
const Instruction* copy_argument(Lanes& s, const Instruction* i) {
    for (u32 left = s.mask; left; left &= left - 1) {
        const unsigned l = static_cast<unsigned>(__builtin_ctz(left));
        std::memcpy(s.registers + i->operand[0] + l * i->extra, s.registers + i->operand[1] + l * i->extra,
                    i->extra);
    }
    return i + 1;
}

// --- atomics
// -------------------------------------------------------------------------------------------------------
// Lane after lane in lane order. Other workers may be at the same address, so each is an atomic exchange
// of bits.

template <class T>
struct AddOp {
    static T run(T old, T b, T) { return static_cast<T>(old + b); }
};
template <class T>
struct MinOp {
    static T run(T old, T b, T) { return b < old ? b : old; }
};
template <class T>
struct MaxOp {
    static T run(T old, T b, T) { return b > old ? b : old; }
};
template <class T>
struct AndOp {
    static T run(T old, T b, T) { return old & b; }
};
template <class T>
struct OrOp {
    static T run(T old, T b, T) { return old | b; }
};
template <class T>
struct XorOp {
    static T run(T old, T b, T) { return old ^ b; }
};
template <class T>
struct ExchOp {
    static T run(T, T b, T) { return b; }
};
template <class T>
struct CasOp {
    static T run(T old, T b, T c) { return old == b ? c : old; }
};
template <class T>
struct IncOp {
    static T run(T old, T b, T) { return old >= b ? 0 : old + 1; }
};
template <class T>
struct DecOp {
    static T run(T old, T b, T) { return old == 0 || old > b ? b : old - 1; }
};
template <class H>
struct SmallAddOp {
    static H run(H old, H b, H) {
        H r;
        from_float(to_float(old) + to_float(b), r);
        return r;
    }
};
template <class H>
struct TwiceAddOp {
    static u32 run(u32 old, u32 b, u32) {
        const H low = SmallAddOp<H>::run({u16(old)}, {u16(b)}, {0});
        const H high = SmallAddOp<H>::run({u16(old >> 16)}, {u16(b >> 16)}, {0});
        return low.bits | u32(high.bits) << 16;
    }
};

template <Space Where, class T, class Op>
const Instruction* atomic(Lanes& s, const Instruction* i) {
    if (!locate<Where>(s, i, i->operand[1], sizeof(T), sizeof(T), true)) return stopped(s, i);
    using U = typename BitsOf<sizeof(T)>::type;
    T* d = lanes_at<T>(s, i->operand[0]);
    const T* b = lanes_at<T>(s, i->operand[2]);
    const T* c = lanes_at<T>(s, i->operand[3]);
    alignas(64) T r[32];
    for (u32 left = s.mask; left; left &= left - 1) {
        const unsigned l = static_cast<unsigned>(__builtin_ctz(left));
        U* at = reinterpret_cast<U*>(s.base + s.offset[l]);
        if constexpr (Where == Space::shared) {
            r[l] = bits_as<T>(*at);
            *at = bits_as<U>(Op::run(r[l], b[l], c[l]));
        } else {
            U old = __atomic_load_n(at, __ATOMIC_RELAXED);
            while (!__atomic_compare_exchange_n(at, &old, bits_as<U>(Op::run(bits_as<T>(old), b[l], c[l])),
                                                true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
            }
            r[l] = bits_as<T>(old);
        }
    }
    blend(d, r, s.mask);
    return i + 1;
}

// --- registration
// --------------------------------------------------------------------------------------------------

template <class R>
constexpr Type register_type() {
    return sizeof(R) == 2 ? Type::b16 : sizeof(R) == 4 ? Type::b32 : Type::b64;
}

template <class M, class R>
void add_access(Registry& r) {
    const Type m = TypeOf<M>::value, w = register_type<R>();
    r.add(Operation::ld, m, w, {}, load<Space::generic, M, R>);
    r.add(Operation::ld, m, w, {Flag::global}, load<Space::global, M, R>);
    r.add(Operation::ld, m, w, {Flag::shared}, load<Space::shared, M, R>);
    r.add(Operation::ld, m, w, {Flag::local}, load<Space::local, M, R>);
    r.add(Operation::ld, m, w, {Flag::param}, load<Space::param, M, R>);
    r.add(Operation::load_parameter, m, w, {}, load_parameter<M, R>);
    r.add(Operation::load_argument, m, w, {}, load_argument<M, R>);
    if constexpr (static_cast<M>(-1) > static_cast<M>(0)) {
        r.add(Operation::st, m, w, {}, store<Space::generic, M, R>);
        r.add(Operation::st, m, w, {Flag::global}, store<Space::global, M, R>);
        r.add(Operation::st, m, w, {Flag::shared}, store<Space::shared, M, R>);
        r.add(Operation::st, m, w, {Flag::local}, store<Space::local, M, R>);
        r.add(Operation::store_argument, m, w, {}, store_argument<M, R>);
    }
}

template <class T, class Op>
void add_atomic(Registry& r, Flag flag, Type type) {
    r.add(Operation::atom, type, Type::none, {flag}, atomic<Space::generic, T, Op>);
    r.add(Operation::atom, type, Type::none, {flag, Flag::global}, atomic<Space::global, T, Op>);
    r.add(Operation::atom, type, Type::none, {flag, Flag::shared}, atomic<Space::shared, T, Op>);
}

template <class T>
void add_bit_atomics(Registry& r) {
    const Type t = TypeOf<T>::value;
    add_atomic<T, AddOp<T>>(r, Flag::add, t);
    add_atomic<T, AndOp<T>>(r, Flag::and_, t);
    add_atomic<T, OrOp<T>>(r, Flag::or_, t);
    add_atomic<T, XorOp<T>>(r, Flag::xor_, t);
    add_atomic<T, ExchOp<T>>(r, Flag::exch, t);
    add_atomic<T, CasOp<T>>(r, Flag::cas, t);
}
template <class T>
void add_extremes(Registry& r) {
    add_atomic<T, MinOp<T>>(r, Flag::min, TypeOf<T>::value);
    add_atomic<T, MaxOp<T>>(r, Flag::max, TypeOf<T>::value);
}

}  // namespace

void register_memory(Registry& r) {
    add_access<std::uint8_t, u16>(r);
    add_access<std::uint8_t, u32>(r);
    add_access<std::uint8_t, u64>(r);
    add_access<std::int8_t, u16>(r);
    add_access<std::int8_t, u32>(r);
    add_access<std::int8_t, u64>(r);
    add_access<u16, u16>(r);
    add_access<u16, u32>(r);
    add_access<u16, u64>(r);
    add_access<std::int16_t, u32>(r);
    add_access<std::int16_t, u64>(r);
    add_access<u32, u32>(r);
    add_access<u32, u64>(r);
    add_access<std::int32_t, u64>(r);
    add_access<u64, u64>(r);
    r.add(Operation::copy_argument, Type::none, Type::none, {}, copy_argument);

    add_bit_atomics<u32>(r);
    add_bit_atomics<u64>(r);
    for_types<u32, u64, std::int32_t, std::int64_t>([&]<class T>() { add_extremes<T>(r); });
    add_atomic<u32, IncOp<u32>>(r, Flag::inc, Type::u32);
    add_atomic<u32, DecOp<u32>>(r, Flag::dec, Type::u32);
    add_atomic<u16, CasOp<u16>>(r, Flag::cas, Type::u16);
    add_atomic<float, AddOp<float>>(r, Flag::add, Type::f32);
    add_atomic<double, AddOp<double>>(r, Flag::add, Type::f64);
    add_atomic<Half, SmallAddOp<Half>>(r, Flag::add, Type::f16);
    add_atomic<Brain, SmallAddOp<Brain>>(r, Flag::add, Type::bf16);
    add_atomic<u32, TwiceAddOp<Half>>(r, Flag::add, Type::f16x2);
    add_atomic<u32, TwiceAddOp<Brain>>(r, Flag::add, Type::bf16x2);
}

}  // namespace emulated::machine::BASCULE_ISA
