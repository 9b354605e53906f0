// Handlers of loads, stores and parameters.
#include <type_traits>

#include "handlers/access.hpp"

namespace emulated::machine::BASCULE_ISA {
namespace {

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

// --- patterns ----------------------------------------------------------------------------------------------
// A full warp mostly reads consecutive addresses, or a single one, or does so in each half, like rows of 16 threads. These
// patterns are recognised without filling s.offset. An instruction first tries its last pattern.

enum class Pattern : std::uint8_t {
    consecutive,
    uniform,
    halves,
    uniform_halves,
    scattered = AllocationCache::no_pattern
};

constexpr bool is_uniform(Pattern pattern) {
    return pattern == Pattern::uniform || pattern == Pattern::uniform_halves;
}
constexpr bool is_whole(Pattern pattern) {
    return pattern == Pattern::consecutive || pattern == Pattern::uniform;
}

// Address offsets of the 16 lanes of a half-warp from its first lane: `of[0]` if the addresses are consecutive, `of[1]`
// if all are equal.
template <class A, u32 Step>
struct Rises {
    alignas(64) A of[2][16] = {};
    constexpr Rises() {
        for (u32 l = 0; l < 16; ++l) of[0][l] = l * Step;
    }
};
template <class A, u32 Step>
constexpr Rises<A, Step> rises;

template <class A, std::size_t Count>
inline bool are_zero(const A (&values)[Count]) {
    static_assert(sizeof values == 64);
#if defined(__AVX512F__)
    const __m512i all = _mm512_load_si512(values);
    return _mm512_test_epi64_mask(all, all) == 0;
#elif defined(__AVX2__)
    const auto* v = reinterpret_cast<const __m256i*>(values);
    const __m256i any = _mm256_or_si256(v[0], v[1]);
    return _mm256_testz_si256(any, any) != 0;
#else
    A any = 0;
    for (const A value : values) any |= value;
    return any == 0;
#endif
}

// True if the addresses follow `pattern`, which must not be `scattered`.
template <class A, u32 Step>
inline bool follows(const A* a, Pattern pattern) {
    const A* rise = rises<A, Step>.of[is_uniform(pattern)];
    const A first = a[0];
    const A second = is_whole(pattern) ? first + (is_uniform(pattern) ? 0 : 16 * Step) : a[16];
    const auto is_wrong = [&](u32 l) __attribute__((always_inline)) {
        return (a[l] ^ (first + rise[l])) | (a[16 + l] ^ (second + rise[l]));
    };
    // A vector register holds `count` elements, so the differences are collected in one register.
    constexpr u32 count = 64 / sizeof(A);
    alignas(64) A wrong[count];
    BASCULE_LANE_LOOP
    for (u32 l = 0; l < count; ++l) wrong[l] = sizeof(A) == 8 ? is_wrong(l) | is_wrong(l + 8) : is_wrong(l);
    return are_zero(wrong);
}

// After this many scattered accesses an instruction looks for a pattern again, because another warp may follow one.
constexpr std::uint8_t patience = 32;

template <class A, u32 Step>
__attribute__((noinline)) bool learn_pattern(const A* a, AllocationCache& cache) {
    auto& pattern = reinterpret_cast<Pattern&>(cache.pattern);
    if (pattern == Pattern::scattered && --cache.patience != 0) return false;
    cache.patience = patience;
    for (const Pattern each :
         {Pattern::consecutive, Pattern::uniform, Pattern::halves, Pattern::uniform_halves}) {
        pattern = each;
        if (follows<A, Step>(a, each)) return true;
    }
    pattern = Pattern::scattered;
    return false;
}

template <class A, u32 Step>
__attribute__((noinline)) bool recognise(const A* a, AllocationCache& cache, bool learn) {
    const auto pattern = static_cast<Pattern>(cache.pattern);
    if (pattern != Pattern::scattered && follows<A, Step>(a, pattern)) [[likely]]
        return true;
    return learn && learn_pattern<A, Step>(a, cache);
}

/// The host addresses of the two halves of a warp.
struct Spot {
    Pattern pattern = Pattern::scattered;
    std::byte* half[2] = {nullptr, nullptr};
};

template <Space Where, class A, u32 Access>
inline __attribute__((always_inline)) bool find_spot(Lanes& s, const Instruction* i, u32 slot, bool write,
                                                     Spot& spot) {
    AllocationCache& cache = s.caches[i->extra];
    AllocationCache& known = s.caches[i->operand[Instruction::pattern]];
    const A* a = lanes_at<A>(s, slot);
    // Addresses of inactive lanes are arbitrary. With them no pattern is learnt, and that of the previous access is not
    // assumed.
    const bool all = s.mask == full_mask;
    if (!(all && (i->bits & Instruction::same_pattern)) && !recognise<A, Access>(a, known, all)) return false;
    spot.pattern = reinterpret_cast<Pattern&>(known.pattern);
    if (spot.pattern == Pattern::scattered) return false;
    const bool uniform = is_uniform(spot.pattern), whole = is_whole(spot.pattern);
    const u64 extent = uniform ? Access : whole ? 32 * Access : 16 * Access;
    const auto inside = [&](u64 first, std::byte*& at) {
        if (first % Access != 0) return false;
        const auto within = [&](u64 base, u64 bytes, std::byte* host) {
            const u64 offset = first - base;
            if (offset > bytes || bytes - offset < extent) return false;
            at = host + offset;
            return true;
        };
        if constexpr (Where == Space::shared) return within(program::shared_window, s.shared_bytes, s.shared);
        if constexpr (Where == Space::global || Where == Space::generic)
            return !(write && cache.read_only) && within(cache.base, cache.bytes, cache.host);
        return false;
    };
    const A displacement = displacement_of<A, Where>(s.registers, i);
    const A first = static_cast<A>(a[0] + displacement), second = static_cast<A>(a[16] + displacement);
    if (!inside(first, spot.half[0])) return false;
    if (whole) {
        spot.half[1] = spot.half[0] + (uniform ? 0 : 16 * Access);
    } else if (!inside(second, spot.half[1])) {
        return false;
    }
    if constexpr (Where != Space::shared) {
        if (s.log != nullptr) [[unlikely]] {
            s.log->add(first, extent, access_of(i, write));
            if (!whole) s.log->add(second, extent, access_of(i, write));
        }
    }
    return true;
}

// Finds the spot of a full warp that accesses two or four values, or uses addresses of an unusual width. One function
// per space and size.
template <Space Where, u32 Bytes>
__attribute__((noinline)) bool find_unusual_spot(Lanes& s, const Instruction* i, u32 slot, bool write,
                                                 Spot& spot) {
    const bool narrow = i->bits & Instruction::narrow;
    const auto of = [&]<u32 Count>() __attribute__((always_inline)) {
        return narrow ? find_spot<Where, u32, Count * Bytes>(s, i, slot, write, spot)
                      : find_spot<Where, u64, Count * Bytes>(s, i, slot, write, spot);
    };
    if (i->count == 1) return of.template operator()<1>();
    return i->count == 2 ? of.template operator()<2>() : of.template operator()<4>();
}

constexpr bool has_spots(Space space) { return space != Space::local && space != Space::param; }

// Accesses of one value, with a 32-bit address in shared memory or a 64-bit address elsewhere, are found without a call.
// Addresses of inactive lanes may be read but not written, and only if accesses are not logged.
template <Space Where, class M>
inline __attribute__((always_inline)) bool find_usual_spot(Lanes& s, const Instruction* i, u32 slot,
                                                           bool write, Spot& spot) {
    if constexpr (has_spots(Where)) {
        constexpr bool narrow = Where == Space::shared;
        using Address = std::conditional_t<narrow, u32, u64>;
        return i->count == 1 && ((i->bits & Instruction::narrow) != 0) == narrow &&
               (s.mask == full_mask || s.log == nullptr) &&
               find_spot<Where, Address, sizeof(M)>(s, i, slot, write, spot);
    }
    return false;
}

// --- loads -------------------------------------------------------------------------------------------------

template <class M, class R>
inline void read_one(const Spot& spot, R* d) {
    const auto half = [&](const std::byte* at, R* to) __attribute__((always_inline)) {
        const M* from = reinterpret_cast<const M*>(at);
        if (is_uniform(spot.pattern)) {
            const R v = static_cast<R>(*from);
            BASCULE_LANE_LOOP
            for (unsigned l = 0; l < 16; ++l) to[l] = v;
        } else {
            BASCULE_LANE_LOOP
            for (unsigned l = 0; l < 16; ++l) to[l] = static_cast<R>(from[l]);
        }
    };
    half(spot.half[0], d);
    half(spot.half[1], d + 16);
}

template <class M, class R>
inline void read_spot(const Spot& spot, R* d, u32 count, u32 displacement) {
    for (u32 h = 0; h < 2; ++h, d += 16) {
        const std::byte* at = spot.half[h] + displacement;
        if (is_uniform(spot.pattern)) {
            const R v = static_cast<R>(read_at<M>(reinterpret_cast<std::uintptr_t>(at)));
            BASCULE_LANE_LOOP
            for (unsigned l = 0; l < 16; ++l) d[l] = v;
        } else if (count == 1) {
            const M* from = reinterpret_cast<const M*>(at);
            BASCULE_LANE_LOOP
            for (unsigned l = 0; l < 16; ++l) d[l] = static_cast<R>(from[l]);
        } else {
            for (unsigned l = 0; l < 16; ++l, at += count * sizeof(M))
                d[l] = static_cast<R>(read_at<M>(reinterpret_cast<std::uintptr_t>(at)));
        }
    }
}

// Gets the offsets of a full warp's lanes in shared memory, and checks all at once. Returns false if one is outside or
// misaligned.
template <class A>
__attribute__((noinline)) bool find_in_shared(Lanes& s, const Instruction* i, u32 access, u32* offset) {
    if (s.shared_bytes < access) return false;
    const A* a = lanes_at<A>(s, i->operand[1]);
    const A base = static_cast<A>(program::shared_window) - displacement_of<A, Space::shared>(s.registers, i);
    const A limit = static_cast<A>(s.shared_bytes - access);
    A outside = 0, low = 0;
    BASCULE_LANE_LOOP
    for (unsigned l = 0; l < 32; ++l) {
        const A at = a[l] - base;
        outside |= at | (limit - at);
        low |= at;
        offset[l] = static_cast<u32>(at);
    }
    return static_cast<std::make_signed_t<A>>(outside) >= 0 && low % access == 0;
}

template <class M>
inline bool find_in_shared(Lanes& s, const Instruction* i, u32* offset) {
    if (s.mask != full_mask || i->count != 1) return false;
    return i->bits & Instruction::narrow ? find_in_shared<u32>(s, i, sizeof(M), offset)
                                         : find_in_shared<u64>(s, i, sizeof(M), offset);
}

template <class M, class R>
inline bool gather_shared(Lanes& s, const Instruction* i, R* d) {
    alignas(64) u32 offset[32];
    if (!find_in_shared<M>(s, i, offset)) return false;
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

// Reads each lane's value at s.base + displacement + s.offset[lane].
template <class M, class R>
inline void read_lanes(Lanes& s, R* r, u32 displacement) {
    const std::uintptr_t base = s.base + displacement;
    for (unsigned l = 0; l < 32; ++l) r[l] = static_cast<R>(read_at<M>(base + s.offset[l]));
}

template <class R>
inline R* register_at(Lanes& s, const Instruction* i, u32 k) {
    return lanes_at<R>(s, i->count == 1 ? i->operand[0] : s.lists[i->operand[0] + k]);
}

template <Space Where, class M, class R>
__attribute__((noinline)) const Instruction* load_unusual(Lanes& s, const Instruction* i) {
    const u32 count = i->count;
    if (s.mask == full_mask) {
        if constexpr (has_spots(Where)) {
            Spot spot;
            if ((count != 1 || ((i->bits & Instruction::narrow) != 0) != (Where == Space::shared)) &&
                find_unusual_spot<Where, sizeof(M)>(s, i, i->operand[1], false, spot)) {
                for (u32 k = 0; k < count; ++k)
                    read_spot<M>(spot, register_at<R>(s, i, k), count, k * sizeof(M));
                return next(s, i + 1);
            }
        }
        if constexpr (Where == Space::shared) {
            if (count == 1 && gather_shared<M>(s, i, register_at<R>(s, i, 0))) return next(s, i + 1);
        }
    }
    if (!locate<Where>(s, i, i->operand[1], sizeof(M) * count, sizeof(M) * count, false))
        return stopped(s, i);
    for (u32 k = 0; k < count; ++k) {
        if (s.mask == full_mask) {
            read_lanes<M>(s, register_at<R>(s, i, k), k * sizeof(M));
        } else {
            alignas(64) R r[32];
            read_lanes<M>(s, r, k * sizeof(M));
            blend(register_at<R>(s, i, k), r, s.mask);
        }
    }
    return next(s, i + 1);
}

// Loads a value of type M into a register of type R, extended by M's sign.
template <Space Where, class M, class R>
const Instruction* load(Lanes& s, const Instruction* i) {
    Spot spot;
    if (!find_usual_spot<Where, M>(s, i, i->operand[1], false, spot)) return load_unusual<Where, M, R>(s, i);
    R* d = lanes_at<R>(s, i->operand[0]);
    const bool all = s.mask == full_mask;
    read_one<M>(spot, static_cast<R*>(__builtin_assume_aligned(all ? d : reinterpret_cast<R*>(s.aside), 64)));
    if (!all) blend(d, reinterpret_cast<R*>(s.aside), s.mask);
    return next(s, i + 1);
}

// Calls access(registers, spot) for each warp in lockstep while their addresses follow the last pattern within the same
// allocation. The other warps run one by one.
template <Space Where, class M, bool Write, class Access>
inline __attribute__((always_inline)) const Instruction* for_each_spot(Lanes& s, const Instruction* i,
                                                                       Access&& access) {
    constexpr bool narrow = Where == Space::shared;
    using Address = std::conditional_t<narrow, u32, u64>;
    const AllocationCache& cache = s.caches[i->extra];
    const auto pattern = static_cast<Pattern>(s.caches[i->operand[Instruction::pattern]].pattern);
    const bool usual = i->count == 1 && ((i->bits & Instruction::narrow) != 0) == narrow && s.log == nullptr;
    if (!usual || pattern == Pattern::scattered || (Write && (is_uniform(pattern) || cache.read_only)))
        return access_one_by_one(s, i, 0);
    const u64 base = narrow ? program::shared_window : cache.base,
              bytes = narrow ? s.shared_bytes : cache.bytes;
    std::byte* const host = narrow ? s.shared : cache.host;
    const bool same = i->bits & Instruction::same_pattern, whole = is_whole(pattern);
    const u64 extent = (is_uniform(pattern) ? 1 : whole ? 32 : 16) * sizeof(M);
    // The displacement is the same for all lanes of all warps.
    const Address displacement = displacement_of<Address, Where>(s.registers, i);
    const u32 slot = i->operand[1], file_bytes = s.file_bytes, others = s.in_step;
    std::byte* registers = s.registers;
    for (u32 done = 0; done <= others; ++done, registers += file_bytes) {
        const Address* a = lanes_in<Address>(registers, slot);
        if (!same && !follows<Address, sizeof(M)>(a, pattern)) [[unlikely]]
            return access_one_by_one(s, i, done);
        const auto offset_of = [&](Address address) {
            return static_cast<Address>(address + displacement) - base;
        };
        const auto is_inside = [&](u64 offset) {
            return offset <= bytes && bytes - offset >= extent && (offset + base) % sizeof(M) == 0;
        };
        const u64 first = offset_of(a[0]);
        const u64 second = whole ? first + (is_uniform(pattern) ? 0 : 16 * sizeof(M)) : offset_of(a[16]);
        if (!is_inside(first) || (!whole && !is_inside(second))) [[unlikely]]
            return access_one_by_one(s, i, done);
        access(registers, Spot{pattern, {host + first, host + second}});
    }
    return next(s, i + 1);
}

template <Space Where, class M, class R>
const Instruction* load_together(Lanes& s, const Instruction* i) {
    return for_each_spot<Where, M, false>(
        s, i, [to = i->operand[0]](std::byte * registers, const Spot& spot) __attribute__((always_inline)) {
            read_one<M>(spot, lanes_in<R>(registers, to));
        });
}

// Reads a wide value for every lane. Unused bytes that are not in memory are read as 0. All bytes in memory are read, as on
// a GPU, because NVRTC's mask omits bytes that its kernel uses.
__attribute__((noinline)) bool read_used(Lanes& s, const Instruction* i, Space space, u32 access,
                                         std::byte (*values)[32]) {
    read_addresses(s, i, i->operand[1]);
    if (!aligned(s, space, access, access, false)) return false;
    bool read_only = false;
    const auto copy = [&](unsigned l, u32 first, u32 bytes) {
        const u64 place = place_of(s, space, l, s.offset[l] + first, bytes, false, read_only);
        if (place != 0) std::memcpy(values[l] + first, reinterpret_cast<const void*>(place), bytes);
        return place != 0;
    };
    for (const unsigned l : LanesOf{s.mask}) {
        for (u32 first = copy(l, 0, access) ? access : 0; first < access; ++first) copy(l, first, 1);
    }
    const u64 used = i->operand.back();
    for (u32 first = 0; used >> first != 0;) {
        first += static_cast<u32>(__builtin_ctzll(used >> first));
        const u32 bytes = static_cast<u32>(__builtin_ctzll(~(used >> first)));
        alignas(64) u64 addresses[32];
        for (unsigned l = 0; l < 32; ++l) addresses[l] = s.offset[l] + first;
        if (s.log != nullptr && (space == Space::global || space == Space::generic))
            note_lanes(s, i, addresses, bytes, false);
        u32 wrong = 0;
        for (const unsigned l : LanesOf{s.mask}) {
            if (place_of(s, space, l, addresses[l], bytes, false, read_only) == 0) wrong |= 1u << l;
        }
        if (wrong != 0) {
            return fail(s, LaneFault::What::out_of_bounds, wrong, addresses[__builtin_ctz(wrong)], bytes,
                        false, name_of(space));
        }
        first += bytes;
    }
    return true;
}

// A load of which only some bytes are used.
template <Space Where, class M, class R>
const Instruction* load_used(Lanes& s, const Instruction* i) {
    const u32 count = i->count;
    std::byte values[32][32] = {};
    if (!read_used(s, i, Where, sizeof(M) * count, values)) return stopped(s, i);
    for (u32 k = 0; k < count; ++k) {
        alignas(64) R r[32];
        for (unsigned l = 0; l < 32; ++l)
            r[l] = static_cast<R>(read_at<M>(reinterpret_cast<std::uintptr_t>(values[l] + k * sizeof(M))));
        blend(register_at<R>(s, i, k), r, s.mask);
    }
    return next(s, i + 1);
}

// --- stores ------------------------------------------------------------------------------------------------

template <class M, class R>
inline void write_one(const Spot& spot, const R* a, u32 mask) {
    for (const unsigned l : LanesOf{mask})
        write_at(reinterpret_cast<std::uintptr_t>(spot.half[l / 16] + l % 16 * sizeof(M)),
                 static_cast<M>(a[l]));
}

template <class M, class R>
inline void write_spot(const Spot& spot, const R* a, u32 count, u32 displacement) {
    for (u32 h = 0; h < 2; ++h, a += 16) {
        std::byte* at = spot.half[h] + displacement;
        if (count == 1) {
            M* to = reinterpret_cast<M*>(at);
            BASCULE_LANE_LOOP
            for (unsigned l = 0; l < 16; ++l) to[l] = static_cast<M>(a[l]);
        } else {
            for (unsigned l = 0; l < 16; ++l, at += count * sizeof(M))
                write_at(reinterpret_cast<std::uintptr_t>(at), static_cast<M>(a[l]));
        }
    }
}

// If several lanes write to one address, the last one wins.
template <Space Where, class M, class R>
__attribute__((noinline)) const Instruction* store_unusual(Lanes& s, const Instruction* i) {
    const u32 count = i->count;
    if constexpr (has_spots(Where)) {
        Spot spot;
        if (s.mask == full_mask &&
            (count != 1 || ((i->bits & Instruction::narrow) != 0) != (Where == Space::shared)) &&
            find_unusual_spot<Where, sizeof(M)>(s, i, i->operand[1], true, spot) &&
            !is_uniform(spot.pattern)) {
            for (u32 k = 0; k < count; ++k)
                write_spot<M>(spot, register_at<R>(s, i, k), count, k * sizeof(M));
            return next(s, i + 1);
        }
    }
    if constexpr (Where == Space::shared) {
        alignas(64) u32 offset[32];
        if (find_in_shared<M>(s, i, offset)) {
            const R* a = register_at<R>(s, i, 0);
            for (unsigned l = 0; l < 32; ++l)
                write_at(reinterpret_cast<std::uintptr_t>(s.shared + offset[l]), static_cast<M>(a[l]));
            return next(s, i + 1);
        }
    }
    if (!locate<Where>(s, i, i->operand[1], sizeof(M) * count, sizeof(M) * count, true)) return stopped(s, i);
    for (u32 k = 0; k < count; ++k) {
        const R* a = register_at<R>(s, i, k);
        for (const unsigned l : LanesOf{s.mask})
            write_at(s.base + s.offset[l] + k * sizeof(M), static_cast<M>(a[l]));
    }
    return next(s, i + 1);
}
template <Space Where, class M, class R>
const Instruction* store(Lanes& s, const Instruction* i) {
    Spot spot;
    if (!find_usual_spot<Where, M>(s, i, i->operand[1], true, spot) || is_uniform(spot.pattern))
        return store_unusual<Where, M, R>(s, i);
    const R* a = lanes_at<R>(s, i->operand[0]);
    if (s.mask == full_mask)
        write_spot<M>(spot, a, 1, 0);
    else
        write_one<M>(spot, a, s.mask);
    return next(s, i + 1);
}

template <Space Where, class M, class R>
const Instruction* store_together(Lanes& s, const Instruction* i) {
    return for_each_spot<Where, M, true>(
        s, i, [from = i->operand[0]](std::byte * registers, const Spot& spot) __attribute__((always_inline)) {
            write_spot<M>(spot, lanes_in<R>(registers, from), 1, 0);
        });
}

// A discarded line is filled with poison, like fresh memory, until it is written.
template <Space Where>
const Instruction* discard(Lanes& s, const Instruction* i) {
    constexpr u32 line = 128;
    if (!locate<Where>(s, i, i->operand[0], line, line, true)) return stopped(s, i);
    for (const unsigned l : LanesOf{s.mask})
        std::memset(reinterpret_cast<void*>(s.base + s.offset[l]), memory::poison, line);
    return next(s, i + 1);
}

// --- parameters --------------------------------------------------------------------------------------------

template <class M, class R>
const Instruction* load_parameter(Lanes& s, const Instruction* i) {
    M v;
    std::memcpy(&v, s.parameters + i->immediate, sizeof v);
    return for_each_lane<R>(
        s, i, [value = static_cast<R>(v)](std::byte*, R * to) __attribute__((always_inline)) {
            BASCULE_LANE_LOOP
            for (unsigned l = 0; l < 32; ++l) to[l] = value;
        });
}
template <class M, class R>
const Instruction* load_argument(Lanes& s, const Instruction* i) {
    const std::byte* from = s.registers + i->operand[1] + i->immediate;
    alignas(64) R r[32];
    for (std::size_t l = 0; l < 32; ++l) {
        M v;
        std::memcpy(&v, from + l * i->extra, sizeof v);
        r[l] = static_cast<R>(v);
    }
    blend(lanes_at<R>(s, i->operand[0]), r, s.write_mask);
    return next(s, i + 1);
}
template <class M, class R>
const Instruction* store_argument(Lanes& s, const Instruction* i) {
    std::byte* to = s.registers + i->operand[0] + i->immediate;
    const R* a = lanes_at<R>(s, i->operand[1]);
    for (const std::size_t l : LanesOf{s.mask}) {
        const M v = static_cast<M>(a[l]);
        std::memcpy(to + l * i->extra, &v, sizeof v);
    }
    return next(s, i + 1);
}
const Instruction* copy_argument(Lanes& s, const Instruction* i) {
    for (const std::size_t l : LanesOf{s.mask})
        std::memcpy(s.registers + i->operand[0] + l * i->extra, s.registers + i->operand[1] + l * i->extra,
                    i->extra);
    return next(s, i + 1);
}

// --- registration ------------------------------------------------------------------------------------------

template <Space Where>
auto with_lockstep(Handler alone, Handler together) {
    if constexpr (has_spots(Where))
        return Lockstep{alone, together};
    else
        return alone;
}

template <class M, class R>
void add_access(Registry& r) {
    const Type m = type_of<M>;
    const Type w = sizeof(R) == 2 ? Type::b16 : sizeof(R) == 4 ? Type::b32 : Type::b64;
    const auto add = [&]<Space Where>(FlagSet space) {
        r.add(Operation::ld, m, w, space,
              with_lockstep<Where>(load<Where, M, R>, load_together<Where, M, R>));
        r.add(Operation::ld_used, m, w, space, load_used<Where, M, R>);
        if constexpr (!is_signed<M> && Where != Space::param)
            r.add(Operation::st, m, w, space,
                  with_lockstep<Where>(store<Where, M, R>, store_together<Where, M, R>));
    };
    add.template operator()<Space::generic>({});
    add.template operator()<Space::global>({Flag::global});
    add.template operator()<Space::shared>({Flag::shared});
    add.template operator()<Space::local>({Flag::local});
    add.template operator()<Space::param>({Flag::param});
    r.add(Operation::load_parameter, m, w, {}, Lockstep{load_parameter<M, R>});
    r.add(Operation::load_argument, m, w, {}, load_argument<M, R>);
    if constexpr (!is_signed<M>) r.add(Operation::store_argument, m, w, {}, store_argument<M, R>);
}

}  // namespace

void register_memory(Registry& r) {
    for_types<u16, u32, u64>([&]<class R>() {
        add_access<u8, R>(r);
        add_access<s8, R>(r);
        add_access<u16, R>(r);
    });
    for_types<u32, u64>([&]<class R>() {
        add_access<s16, R>(r);
        add_access<u32, R>(r);
    });
    add_access<s32, u64>(r);
    add_access<u64, u64>(r);
    r.add(Operation::discard, discard<Space::generic>);
    r.add(Operation::discard, discard<Space::global>, {Flag::global});
    r.add(Operation::copy_argument, copy_argument);
}

}  // namespace emulated::machine::BASCULE_ISA
