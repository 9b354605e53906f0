// Handlers of shuffles. They compute the source lane of each lane first, then permute the whole warp at once.
#include "handlers/simd.hpp"

namespace emulated::machine::BASCULE_ISA {
namespace {

inline void permute(const u32* a, const u32* from, u32* r) {
#if defined(__AVX512F__)
    const __m512i low = _mm512_load_si512(a), high = _mm512_load_si512(a + 16);
    for (unsigned l = 0; l < 32; l += 16)
        _mm512_store_si512(r + l, _mm512_permutex2var_epi32(low, _mm512_load_si512(from + l), high));
#else
    for (unsigned l = 0; l < 32; ++l) r[l] = a[from[l]];
#endif
}

template <Flag Mode>
const Instruction* shuffle(Lanes& s, const Instruction* i) {
    const u32* members = lanes_at<u32>(s, i->operand[5]);
    u32 required = 0;
    BASCULE_LANE_LOOP
    for (u32 l = 0; l < 32; ++l) required |= members[l] & (0u - (s.mask >> l & 1u));
    if (!meet(s, i, required)) return nullptr;
    const u32* a = lanes_at<u32>(s, i->operand[2]);
    const u32* b = lanes_at<u32>(s, i->operand[3]);
    const u32* c = lanes_at<u32>(s, i->operand[4]);
    const u32 mask = s.mask;
    alignas(64) u32 from[32], undefined[32], inside[32], r[32];
    BASCULE_LANE_LOOP
    for (u32 l = 0; l < 32; ++l) {
        const u32 distance = b[l] & 31, segment = c[l] >> 8 & 31, clamp = c[l] & 31;
        const u32 low = l & segment, bound = low | (clamp & ~segment);
        const s32 at = s32(Mode == Flag::up     ? l - distance
                           : Mode == Flag::down ? l + distance
                           : Mode == Flag::bfly ? l ^ distance
                                                : low | (distance & ~segment));
        const bool ok = Mode == Flag::up ? at >= s32(bound) : at <= s32(bound);  // .up: a lower bound
        from[l] = ok ? u32(at) : l;
        inside[l] = ok ? full_mask : 0u;
        // If the source lane is not in the mask or has ended, the manual leaves the result undefined; here it is all ones,
        // which is an invalid address and a NaN.
        undefined[l] = ((members[l] & mask) >> from[l] & 1u) - 1u;
    }
    permute(a, from, r);
    BASCULE_LANE_LOOP
    for (u32 l = 0; l < 32; ++l) r[l] |= undefined[l] & inside[l];
    const u32 predicate = pack_mask(inside);
    blend(lanes_at<u32>(s, i->operand[0]), r, s.write_mask);
    write_predicate(s, i->operand[1], predicate);
    return next(s, i + 1);
}

}  // namespace

void register_shuffles(Registry& r) {
    for_flags<Flag::up, Flag::down, Flag::bfly, Flag::idx>(
        [&]<Flag F>() { r.add(Operation::shfl, Type::u32, Type::none, {F}, shuffle<F>); });
}

}  // namespace emulated::machine::BASCULE_ISA
