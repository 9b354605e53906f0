// Asynchronous copies. They are performed as late as possible: at the wait, or when the thread ends. A program that
// reads the destination without a wait reads poison.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "machine/reduction.hpp"

namespace emulated::machine {

/// The value of destination bytes until the program has waited: NaN, and not a valid address or mbarrier.
inline constexpr int poison_byte = 0xff;

/// The cp.async copies of one warp. Each lane has its own groups.
class LaneCopies {
  public:
    /// The copies of one instruction.
    struct Copy {
        std::uint32_t lanes = 0;  ///< whose copies are pending
        std::uint32_t bytes = 0;  ///< of each lane's destination
        std::array<std::byte*, 32> to;
        std::array<const std::byte*, 32> from;
        std::array<std::uint32_t, 32> valid;  ///< bytes to read from the source; zeros follow
        std::array<std::uint32_t, 32> group;  ///< group number; set by `add`
    };

    /// The caller fills the other members for `lanes`.
    Copy& add(std::uint32_t lanes, std::uint32_t bytes);
    void commit(std::uint32_t lanes) noexcept;
    /// Performs the copies that the lane has committed, except those of its last `recent` groups.
    void wait(unsigned lane, std::uint32_t recent) noexcept;
    /// Performs all copies of these lanes, committed or not.
    void finish(std::uint32_t lanes) noexcept;
    /// Performs the lane's copies with numbers below `end` (see `issued`).
    void finish_before(unsigned lane, std::uint64_t end) noexcept;
    std::uint64_t issued() const noexcept { return forgotten_ + copies_.size(); }
    /// The copy with this number; null once all its lanes are done.
    const Copy* find(std::uint64_t number) const noexcept {
        return number >= forgotten_ && number < issued() ? &copies_[number - forgotten_] : nullptr;
    }
    void clear() noexcept;

  private:
    static void perform(Copy& copy, unsigned lane) noexcept;
    void forget_done() noexcept;

    std::vector<Copy> copies_;     // in the order of issue
    std::uint64_t forgotten_ = 0;  // completed copies removed from the front
    std::array<std::uint32_t, 32> committed_{};
};

/// A tile of a tensor as runs of bytes, each in both memories.
struct Tile {
    struct Run {
        std::byte* global = nullptr;  ///< null: outside of the tensor
        std::uint32_t shared = 0;     ///< offset from the tile's first byte in shared memory
        std::uint32_t bytes = 0;
    };
    std::vector<Run> runs;
    std::uint16_t fill = 0;  ///< every two bytes outside of the tensor
    bool rounds = false;     ///< a load rounds f32 to tf32

    void load(std::byte* to) const noexcept;
    void store(const std::byte* from, Reduction reduce) const noexcept;
};

/// A bulk copy, or an arrival at an mbarrier once a lane's copies are complete.
struct Transfer {
    std::uint64_t number = 0;    ///< counts from 1; set by Transfers::add
    const void* warp = nullptr;  ///< the warp that issued it
    unsigned lane = 0;
    std::uint32_t group = 0;  ///< for bulk copies without an mbarrier
    std::byte* to = nullptr;  ///< null for an arrival, and for the store of a tile
    const std::byte* from = nullptr;
    std::uint32_t bytes = 0;
    Reduction reduce = nullptr;
    std::shared_ptr<const Tile> tile;  ///< for the copy of a tile; it has the addresses in global memory
    std::byte* barrier = nullptr;
    LaneCopies* before = nullptr;  ///< for an arrival: the copies that it follows
    std::uint64_t issued = 0;      ///< `before->issued()` when the arrival was requested
    std::vector<std::byte> taken;  ///< the source, if it was read before the destination is written
    std::byte* view =
        nullptr;  ///< of a destination in shared memory; null if it is not viewed (operations/async_view)
    std::uint32_t view_bytes = 0;

    void take();
    void perform() const noexcept;

  private:
    void write() const noexcept;
};

/// The pending transfers of a cluster's blocks. Used by one thread at a time.
class Transfers {
  public:
    void add(Transfer transfer) {
        transfer.number = ++issued_;
        waiting_.push_back(std::move(transfer));
    }
    /// How many were added, and those that are pending, in that order.
    std::uint64_t issued() const noexcept { return issued_; }
    std::span<const Transfer> waiting() const noexcept { return waiting_; }
    /// Performs the transfers that signal this mbarrier, at most until its phase ends. Returns an error, or null.
    const char* signal(const std::byte* barrier);
    /// Performs the thread's bulk groups with numbers below `end`.
    void finish_groups(const void* warp, unsigned lane, std::uint32_t end);
    /// Reads the sources of these groups without performing them.
    void take_groups(const void* warp, unsigned lane, std::uint32_t end);
    /// Performs the bulk groups of a thread that ends, because nothing can wait for them any more.
    void finish_thread(const void* warp, std::uint32_t lanes);
    void clear() noexcept { waiting_.clear(); }

  private:
    template <class Of>
    void finish(const Of& of);
    std::vector<Transfer> waiting_;
    std::uint64_t issued_ = 0;
};

}  // namespace emulated::machine
