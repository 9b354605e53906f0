// Vector clocks of a grid: what a thread knows of the other threads' accesses. An epoch is a number that grows in each block
// whenever a thread releases; an access belongs to its thread's epoch. An entry for a warp or a block stands for all its
// threads, so that the clocks of usual kernels have few entries.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace emulated::checks {

/// The block, its warp and the lane of a thread.
struct ThreadId {
    std::uint32_t block = 0, warp = 0, lane = 0;
};

/// For threads, warps and blocks, the last of their epochs that is known.
class Clock {
  public:
    bool empty() const noexcept { return entries_.empty(); }
    std::size_t size() const noexcept { return entries_.size(); }
    void clear() noexcept { entries_.clear(); }

    void see_block(std::uint32_t block, std::uint32_t epoch) { see(key(block), epoch); }
    void see_warp(std::uint32_t block, std::uint32_t warp, std::uint32_t epoch) {
        see(key(block) | warp_part(warp), epoch);
    }
    void see_thread(const ThreadId& thread, std::uint32_t epoch) {
        see(key(thread.block) | warp_part(thread.warp) | (thread.lane + 1), epoch);
    }
    void join(const Clock& other);
    /// True if what the thread did in `epoch` is known.
    bool has(const ThreadId& thread, std::uint32_t epoch) const noexcept;
    /// Replaces the entries of all threads of a warp by one of the warp, and those of all warps of a block by one of the
    /// block. All blocks have this number of threads.
    void compact(std::uint32_t threads);

  private:
    // A key sorts a block before its warps and a warp before its lanes.
    using Key = std::uint64_t;
    using Entry = std::pair<Key, std::uint32_t>;
    static constexpr unsigned lane_bits = 6, block_shift = 12;
    static constexpr Key key(std::uint32_t block) noexcept { return Key{block} << block_shift; }
    static constexpr Key warp_part(std::uint32_t warp) noexcept { return Key{warp + 1} << lane_bits; }

    void see(Key key, std::uint32_t epoch);
    std::uint32_t at(Key key) const noexcept;

    std::vector<Entry> entries_;  // sorted
};

/// The scope of a fence or a strong access: the whole device, or one block.
enum class Scope : std::uint8_t { device, block };

/// What threads know. Barriers hand on all of it.
struct Knowledge {
    Clock seen;  ///< precedes what the threads do next
    /// What preceded their last fence, by scope. A strong write of these threads publishes it.
    std::array<Clock, 2> fenced;
    /// What their strong reads found, by scope. Their next fence makes it seen.
    std::array<Clock, 2> awaited;

    void join(const Knowledge& other);
    void clear() noexcept;
    void compact(std::uint32_t threads);
    bool empty() const noexcept;
};

}  // namespace emulated::checks
