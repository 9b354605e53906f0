// The modifiers of PTX opcodes that are not types, as a small set. Their order in an opcode does not matter.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace emulated::program {

enum class Flag : std::uint8_t {
    // clang-format off
    // floating point
    rn, rz, rm, rp, rni, rzi, rmi, rpi, ftz, sat, approx, full, noftz, nan_wins, relu,
    // integer
    lo, hi, wide, cc, wrap, clamp, left, right, shiftamt, f4e, b4e, rc8, ecl, ecr, rc16,
    // comparison
    eq, ne, lt, le, gt, ge, ls, hs, equ, neu, ltu, leu, gtu, geu, num, is_nan,
    // testp
    finite, infinite, number, notanumber, normal, subnormal,
    // spaces
    global, constant, shared, local, param, shared_cta,
    // memory
    to, v2, v4, nc, weak, is_volatile, relaxed, acquire, release, acq_rel, sc, mmio,
    // scopes
    cta, gpu, sys, cluster,
    // cache hints, fences
    ca, cg, cs, cv, lu, wb, wt, evict, level, keep, gl, proxy_alias,
    // atomics, reductions
    add, min, max, and_, or_, xor_, exch, cas, inc, dec, popc,
    // between threads
    up, down, bfly, idx, sync, aligned, all, any, uni, ballot, warp, arrive, red,
    count,
    // clang-format on
};
static_assert(static_cast<unsigned>(Flag::count) <= 128);

/// The flag that an opcode's part spells.
std::optional<Flag> flag_named(std::string_view part) noexcept;

class FlagSet {
  public:
    constexpr FlagSet() = default;
    constexpr FlagSet(std::initializer_list<Flag> flags) {
        for (const Flag flag : flags) add(flag);
    }
    constexpr void add(Flag flag) { word(flag) |= bit(flag); }
    constexpr bool has(Flag flag) const { return (words_[index(flag) / 64] & bit(flag)) != 0; }
    constexpr bool empty() const { return (words_[0] | words_[1]) == 0; }
    constexpr FlagSet operator|(const FlagSet& b) const {
        return {words_[0] | b.words_[0], words_[1] | b.words_[1]};
    }
    constexpr FlagSet operator&(const FlagSet& b) const {
        return {words_[0] & b.words_[0], words_[1] & b.words_[1]};
    }
    constexpr FlagSet minus(const FlagSet& b) const {
        return {words_[0] & ~b.words_[0], words_[1] & ~b.words_[1]};
    }
    constexpr bool single() const {
        return (words_[0] == 0 || words_[1] == 0) && !empty() &&
               ((words_[0] & (words_[0] - 1)) | (words_[1] & (words_[1] - 1))) == 0;
    }
    constexpr bool operator==(const FlagSet&) const = default;
    constexpr std::uint64_t low() const { return words_[0]; }
    constexpr std::uint64_t high() const { return words_[1]; }

  private:
    constexpr FlagSet(std::uint64_t low, std::uint64_t high) : words_{low, high} {}
    static constexpr unsigned index(Flag flag) { return static_cast<unsigned>(flag); }
    static constexpr std::uint64_t bit(Flag flag) { return std::uint64_t{1} << (index(flag) % 64); }
    constexpr std::uint64_t& word(Flag flag) { return words_[index(flag) / 64]; }

    std::uint64_t words_[2] = {0, 0};
};

}  // namespace emulated::program
