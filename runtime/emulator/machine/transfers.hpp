// Copies that go on while the program does something else. Here they are done as late as a program that waits for them
// cannot notice: at the wait, or when the thread ends. What a program reads without a wait is poison.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "machine/reduction.hpp"

namespace emulated::machine {

/// What the destination of a copy holds until somebody has waited: no number, no address, and no mbarrier.
inline constexpr int poison_byte = 0xff;

/// cp.async of the lanes of one warp, in groups of each lane's own.
class LaneCopies {
  public:
    /// One instruction.
    struct Copy {
        std::uint32_t lanes = 0;  ///< whose copy is not done
        std::uint32_t bytes = 0;  ///< of each lane's destination
        std::array<std::byte*, 32> to;
        std::array<const std::byte*, 32> from;
        std::array<std::uint32_t, 32> valid;  ///< bytes of the source; zeros follow
        std::array<std::uint32_t, 32> group;  ///< by number; set by `add`
    };

    /// The caller fills the rest for `lanes`.
    Copy& add(std::uint32_t lanes, std::uint32_t bytes);
    void commit(std::uint32_t lanes) noexcept;
    /// Does what the lane has committed, but for its `recent` last groups.
    void wait(unsigned lane, std::uint32_t recent) noexcept;
    /// Does all copies of these lanes, committed or not.
    void finish(std::uint32_t lanes) noexcept;
    /// Does the lane's copies that were issued before there were `end` in all.
    void finish_before(unsigned lane, std::uint64_t end) noexcept;
    std::uint64_t issued() const noexcept { return forgotten_ + copies_.size(); }
    void clear() noexcept;

  private:
    static void perform(Copy& copy, unsigned lane) noexcept;
    void forget_done() noexcept;

    std::vector<Copy> copies_;     // in the order of issue
    std::uint64_t forgotten_ = 0;  // that stood before them
    std::array<std::uint32_t, 32> committed_{};
};

/// A bulk copy, or an arrival at an mbarrier when a lane's copies are done.
struct Transfer {
    const void* warp = nullptr;  ///< who issued it
    unsigned lane = 0;
    std::uint32_t group = 0;  ///< of bulk copies without an mbarrier
    std::byte* to = nullptr;  ///< null: an arrival
    const std::byte* from = nullptr;
    std::uint32_t bytes = 0;
    Reduction reduce = nullptr;
    std::byte* barrier = nullptr;
    LaneCopies* before = nullptr;  ///< of an arrival
    std::uint64_t issued = 0;      ///< of `before`, when the arrival was asked for
    std::vector<std::byte> taken;  ///< the source, once it was read before the destination is written

    void take();
    void perform() const noexcept;
};

/// The transfers of a cluster's blocks that are not done. Used by one thread at a time.
class Transfers {
  public:
    void add(Transfer transfer) { waiting_.push_back(std::move(transfer)); }
    /// Does what signals this mbarrier. What goes wrong there, or null.
    const char* signal(const std::byte* barrier);
    /// Does the thread's bulk groups before number `end`.
    void finish_groups(const void* warp, unsigned lane, std::uint32_t end);
    /// Only reads their sources.
    void take_groups(const void* warp, unsigned lane, std::uint32_t end);
    /// A thread ends: nobody can wait for its bulk groups any more.
    void finish_thread(const void* warp, std::uint32_t lanes);
    void clear() noexcept { waiting_.clear(); }

  private:
    template <class Of>
    void finish(const Of& of);
    std::vector<Transfer> waiting_;
};

}  // namespace emulated::machine
