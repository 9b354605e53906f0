// The shadow of memory that the search for races keeps: for each four bytes, the last accesses that may still race.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

namespace emulated::checks {

/// Lanes of a warp that accessed the same bytes in the same way and epoch.
struct Accesses {
    static constexpr std::uint8_t writes = 1, strong = 2;
    static constexpr std::uint8_t in_block = 4;  ///< strong in its own block only (.cta)
    static constexpr std::uint8_t by_warp = 8;   ///< all lanes together, as for a matrix
    static constexpr std::uint8_t is_atomic = 16;

    static constexpr std::uint32_t most_pc = (1u << 18) - 1;  ///< later instructions are not watched

    std::uint32_t block = 0, epoch = 0, lanes = 0;
    std::uint32_t pc : 18 = 0;
    std::uint32_t warp : 5 = 0;
    std::uint32_t bytes : 4 = 0;  ///< one bit for each of the cell's bytes; 0: no access
    std::uint32_t kind : 5 = 0;

    bool is_of_one() const noexcept { return (lanes & (lanes - 1)) == 0; }
};

/// True if the accesses race unless one precedes the other.
inline bool conflict(const Accesses& a, const Accesses& b) {
    if (((a.kind | b.kind) & Accesses::writes) == 0) return false;
    const bool same_block = a.block == b.block;
    if (((a.kind | b.kind) & Accesses::by_warp) != 0 && same_block && a.warp == b.warp) return false;
    const bool both_strong = (a.kind & b.kind & Accesses::strong) != 0;
    return !both_strong || (!same_block && ((a.kind | b.kind) & Accesses::in_block) != 0);
}

/// True if what conflicts with `b` conflicts with `a` too.
inline bool covers(const Accesses& a, const Accesses& b) {
    if ((b.kind & Accesses::writes) != 0 && (a.kind & Accesses::writes) == 0) return false;
    if ((a.kind & Accesses::strong) == 0) return (a.kind & Accesses::by_warp) == 0;
    return (b.kind & Accesses::strong) != 0 &&
           ((a.kind & Accesses::in_block) != 0 || (b.kind & Accesses::in_block) == 0);
}

/// The accesses to four bytes of memory, or to one if the threads access the bytes apart.
struct Cell {
    std::array<Accesses, 4> kept{};
    std::uint32_t parts = 0;  ///< not 0: the bytes have cells of their own (Shadow::parts)
};

/// The cells of a grid's memory. Bounded: memory beyond has no cells, and is not watched. Used by one thread.
class Shadow {
  public:
    /// The cell of the four bytes around an address of global memory; null beyond the limit.
    Cell* find(std::uint64_t address) {
        const std::uint64_t number = address / page_bytes;
        Recent& recent = recent_[number % recent_.size()];
        if (number != recent.number) recent = {number, turn_to(number)};
        return recent.page == nullptr ? nullptr : &recent.page->cells[address % page_bytes / 4];
    }
    /// Forgets the accesses to global memory that a kernel has just allocated.
    void forget(std::uint64_t address, std::uint64_t bytes);

    /// Makes the cells of shared memory, or forgets all accesses to it.
    void clear(std::vector<Cell>& cells, std::size_t count);
    /// The cells of the four bytes of a cell; null beyond the limit.
    std::array<Cell, 4>* parts(Cell& cell);

  private:
    static constexpr std::uint64_t page_bytes = 4096;
    static constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;
    struct Page {
        std::array<Cell, page_bytes / 4> cells{};
    };

    struct Recent {
        std::uint64_t number = ~std::uint64_t{0};
        Page* page = nullptr;
    };

    Page* turn_to(std::uint64_t number);
    void clear(Cell& cell);
    bool take(std::uint64_t bytes) noexcept;

    std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
    std::deque<std::array<Cell, 4>> parts_;
    std::array<Recent, 64> recent_{};
    std::uint64_t used_ = 0;
};

}  // namespace emulated::checks
