// The modifiers of PTX opcodes that are not types, as a small set. The set does not keep their order.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace emulated::program {

// clang-format off
/// FLAG: the enumerator is the spelling. NAMED: the spelling in an opcode is given.
#define BASCULE_PTX_FLAGS(FLAG, NAMED) \
    /* floating point */ FLAG(rn) FLAG(rz) FLAG(rm) FLAG(rp) FLAG(rni) FLAG(rzi) FLAG(rmi) FLAG(rpi) FLAG(ftz) \
    FLAG(sat) FLAG(approx) FLAG(full) FLAG(noftz) NAMED(nan_wins, "NaN") FLAG(relu) \
    /* integer */ FLAG(lo) FLAG(hi) FLAG(wide) FLAG(cc) FLAG(wrap) FLAG(clamp) NAMED(left, "l") \
    NAMED(right, "r") FLAG(shiftamt) FLAG(f4e) FLAG(b4e) FLAG(rc8) FLAG(ecl) FLAG(ecr) FLAG(rc16) \
    /* comparison */ FLAG(eq) FLAG(ne) FLAG(lt) FLAG(le) FLAG(gt) FLAG(ge) FLAG(ls) FLAG(hs) FLAG(equ) FLAG(neu) \
    FLAG(ltu) FLAG(leu) FLAG(gtu) FLAG(geu) FLAG(num) NAMED(is_nan, "nan") \
    /* testp */ FLAG(finite) FLAG(infinite) FLAG(number) FLAG(notanumber) FLAG(normal) FLAG(subnormal) \
    /* spaces */ FLAG(global) NAMED(constant, "const") FLAG(shared) FLAG(local) FLAG(param) \
    NAMED(shared_cta, "shared::cta") \
    /* memory */ FLAG(to) FLAG(v2) FLAG(v4) FLAG(nc) FLAG(weak) NAMED(is_volatile, "volatile") FLAG(relaxed) \
    FLAG(acquire) FLAG(release) FLAG(acq_rel) FLAG(sc) FLAG(mmio) \
    /* scopes */ FLAG(cta) FLAG(gpu) FLAG(sys) FLAG(cluster) \
    /* cache hints, fences */ FLAG(ca) FLAG(cg) FLAG(cs) FLAG(cv) FLAG(lu) FLAG(wb) FLAG(wt) \
    NAMED(evict, "L1::evict_first") NAMED(level, "L1") NAMED(keep, "L2::evict_last") FLAG(gl) \
    /* atomics, reductions */ FLAG(add) FLAG(min) FLAG(max) NAMED(and_, "and") NAMED(or_, "or") \
    NAMED(xor_, "xor") FLAG(exch) FLAG(cas) FLAG(inc) FLAG(dec) FLAG(popc) \
    /* between threads */ FLAG(up) FLAG(down) FLAG(bfly) FLAG(idx) FLAG(sync) FLAG(aligned) FLAG(all) FLAG(any) \
    FLAG(uni) FLAG(ballot) FLAG(warp) FLAG(arrive) FLAG(red) \
    /* matrices of a warp */ FLAG(load) FLAG(store) FLAG(mma) FLAG(a) FLAG(b) FLAG(c) FLAG(d) \
    FLAG(row) FLAG(col) FLAG(trans) FLAG(x1) FLAG(x2) FLAG(x4) \
    FLAG(satfinite) FLAG(sp) NAMED(sp_ordered, "sp::ordered_metadata") FLAG(m8n8) FLAG(m8n8k4) FLAG(m8n8k16) \
    FLAG(m8n8k32) FLAG(m8n8k128) FLAG(m16n8k4) FLAG(m16n8k8) FLAG(m16n8k16) FLAG(m16n8k32) FLAG(m16n8k64) \
    FLAG(m16n8k128) FLAG(m16n8k256) FLAG(m16n16k8) FLAG(m16n16k16) FLAG(m8n32k16) FLAG(m32n8k16) \
    /* matrices of a warpgroup; the shape stands for all (Opcode::columns) */ FLAG(mma_async) FLAG(fence) \
    NAMED(warpgroup_shape, "m64nNkK") \
    /* video, small formats, L2 policies */ FLAG(po) FLAG(shr7) FLAG(shr15) FLAG(rna) FLAG(pack) \
    FLAG(xorsign) NAMED(abs_, "abs") FLAG(v8) FLAG(mask) FLAG(fractional) FLAG(range) FLAG(cvt) \
    NAMED(policy, "L2::cache_hint") NAMED(first, "L2::evict_first") \
    /* asynchronous copies */ FLAG(async) FLAG(bulk) FLAG(commit_group) FLAG(wait_group) FLAG(wait_all) FLAG(read) \
    FLAG(noinc) FLAG(bulk_group) FLAG(mbarrier) NAMED(complete_tx_bytes, "mbarrier::complete_tx::bytes") \
    NAMED(multicast, "multicast::cluster") FLAG(prefetch) FLAG(reduce) \
    /* barriers in shared memory */ FLAG(init) FLAG(inval) FLAG(expect_tx) FLAG(complete_tx) FLAG(arrive_drop) \
    FLAG(noComplete) FLAG(test_wait) FLAG(try_wait) FLAG(parity) FLAG(pending_count) \
    /* clusters */ NAMED(shared_cluster, "shared::cluster") FLAG(wait) FLAG(launch_dependents) FLAG(proxy) FLAG(alias) \
    FLAG(mbarrier_init) NAMED(async_generic, "async::generic") NAMED(restricted_cta, "sync_restrict::shared::cta") \
    NAMED(restricted_cluster, "sync_restrict::shared::cluster") \
    /* textures, surfaces */ NAMED(geometry_1d, "1d") NAMED(geometry_2d, "2d") NAMED(geometry_3d, "3d") FLAG(a1d) \
    FLAG(a2d) FLAG(cube) FLAG(acube) NAMED(lod, "level") FLAG(grad) FLAG(g) FLAG(p) FLAG(trap) \
    FLAG(zero) FLAG(width) FLAG(height) FLAG(depth) FLAG(array_size) FLAG(num_mipmap_levels) FLAG(num_samples) \
    FLAG(texref) FLAG(samplerref) FLAG(surfref) \
    /* tensor copies, tensor maps */ FLAG(tensor) FLAG(tile) FLAG(im2col) FLAG(im2col_no_offs) \
    NAMED(geometry_4d, "4d") NAMED(geometry_5d, "5d") FLAG(tensormap) NAMED(tensor_proxy, "tensormap::generic") \
    FLAG(cp_fenceproxy) FLAG(replace) FLAG(b1024) FLAG(global_address) FLAG(rank) FLAG(box_dim) FLAG(global_dim) \
    FLAG(global_stride) FLAG(element_stride) FLAG(elemtype) FLAG(interleave_layout) FLAG(swizzle_mode) \
    FLAG(fill_mode) \
    /* what lies outside of a tensor, the first level of a mipmapped texture */ FLAG(oob) FLAG(base)

enum class Flag : std::uint8_t {
#define FLAG(name) name,
#define NAMED(name, part) name,
    BASCULE_PTX_FLAGS(FLAG, NAMED)
#undef NAMED
#undef FLAG
    count,
};
// clang-format on

/// The flag for a part of an opcode.
std::optional<Flag> flag_named(std::string_view part) noexcept;

class FlagSet {
    using Word = std::uint64_t;
    static constexpr std::size_t index(Flag flag) { return static_cast<std::size_t>(flag); }
    static constexpr Word bit(Flag flag) { return Word{1} << (index(flag) % 64); }
    static constexpr std::size_t count = (static_cast<std::size_t>(Flag::count) + 63) / 64;

    // Defined before its uses, because old Clangs evaluate a constexpr initialiser with only the functions defined above
    // it.
    template <class Combine>
    constexpr FlagSet combined(const FlagSet& b, Combine combine) const {
        FlagSet made;
        for (std::size_t i = 0; i < count; ++i) made.words_[i] = combine(words_[i], b.words_[i]);
        return made;
    }

  public:
    constexpr FlagSet() = default;
    constexpr FlagSet(std::initializer_list<Flag> flags) {
        for (const Flag flag : flags) add(flag);
    }
    constexpr void add(Flag flag) { words_[index(flag) / 64] |= bit(flag); }
    constexpr bool has(Flag flag) const { return (words_[index(flag) / 64] & bit(flag)) != 0; }
    constexpr bool empty() const { return *this == FlagSet(); }
    constexpr bool single() const { return size() == 1; }
    constexpr FlagSet operator|(const FlagSet& b) const {
        return combined(b, [](Word x, Word y) { return x | y; });
    }
    constexpr FlagSet operator&(const FlagSet& b) const {
        return combined(b, [](Word x, Word y) { return x & y; });
    }
    constexpr FlagSet minus(const FlagSet& b) const {
        return combined(b, [](Word x, Word y) { return x & ~y; });
    }
    /// The first flag of `group` that is in the set, or `missing`.
    constexpr Flag first_of(std::initializer_list<Flag> group, Flag missing) const {
        for (const Flag each : group) {
            if (has(each)) return each;
        }
        return missing;
    }
    constexpr bool operator==(const FlagSet&) const = default;
    constexpr std::uint64_t digest() const {
        std::uint64_t made = 0;
        for (const Word word : words_) made = (made ^ word) * 0xc2b2ae3d27d4eb4full;
        return made;
    }

  private:
    constexpr int size() const {
        int made = 0;
        for (const Word word : words_) made += std::popcount(word);
        return made;
    }

    std::array<Word, count> words_{};
};

}  // namespace emulated::program
