// The state with which one thread runs blocks of a grid, one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "machine/cluster.hpp"
#include "machine/grid.hpp"
#include "machine/warp.hpp"

namespace emulated::machine {

/// Zeroed pages that grow and are reused by later launches. Untouched pages cost nothing. Owned by one thread.
class Arena {
  public:
    Arena() = default;
    ~Arena();
    Arena(Arena&&) = delete;

    /// Returns at least `bytes`, 64-byte aligned: the same memory with its content, or zeroed pages if it has to grow. Throws:
    /// std::bad_alloc.
    std::byte* take(std::size_t bytes);

  private:
    std::byte* data_ = nullptr;
    std::size_t capacity_ = 0;
};

/// Runs one block at a time. Owns its register files, shared and local memory, and reuses them, so that a launch like
/// the previous one allocates nothing. Not thread-safe.
class Worker {
  public:
    void begin(GridState& grid);
    /// Runs the block with this linear index until it ends or faults.
    std::optional<Fault> run_block(std::uint64_t linear);
    /// Moves the logged accesses of the blocks so far to `to`, if the request has a log.
    void give_log(races::AccessLog& to) {
        block_.watchdog.stop();
        to.take(log_);
    }

    // The same in steps, for blocks that wait for other blocks (machine/grids/team).
    void start_block(const Dim3& index, Cluster& cluster);
    enum class Turn : std::uint8_t {
        done,
        goes_on,
        waits,  ///< some warps only looped: other blocks may have to run first
        stuck,  ///< at a fault, or at a barrier that not all threads can reach
    };
    /// Runs every warp until it exits, waits or yields.
    Turn turn();
    bool has_fault() const noexcept { return lanes_.stop == Stop::fault; }
    /// Valid after `turn` returned `stuck`.
    Fault fault() { return lanes_.stop == Stop::fault ? describe() : describe_deadlock(); }
    /// True if a warp made progress since the last call.
    bool made_progress() noexcept {
        const std::uint64_t steps = block_.watchdog.steps();
        return std::exchange(steps_reported_, steps) != steps;
    }
    /// Counts progress of other blocks as this block's for the watchdog, if `steps` has changed.
    void note_progress_elsewhere(std::uint64_t steps) noexcept {
        if (std::exchange(steps_elsewhere_, steps) == steps) return;
        block_.watchdog.note_progress();
        steps_reported_ = block_.watchdog.steps();
    }

  private:
    void place_block(const Dim3& index, Cluster& cluster);
    void start(std::span<Warp> warps) const;
    void place_local(const Warp& warp);
    bool run(Warp& warp);
    bool run_once(std::span<Warp> warps);
    std::size_t count_in_step(std::span<const Warp> warps) const;
    bool run_all();
    void let_go(std::uint32_t barrier);
    bool release_whole_block();
    bool release_barriers();
    bool release_registers();

    // register_files.cpp
    void place_threads();
    void fill_registers();
    void fill_special(const program::Code::SpecialSlot& slot, std::span<const Warp> warps) const;
    void find_stale_specials();

    // faults.cpp
    Fault describe();
    void describe_trap(Fault& fault) const;
    void describe_shared(Fault& fault) const;
    void describe_cluster(Fault& fault, std::uint64_t rank) const;
    void describe_endless(Fault& fault, std::uint32_t pc) const;
    Fault describe_deadlock() const;
    std::uint64_t count_others(const LaneFault& first);
    Dim3 thread_of(std::uint32_t linear) const;
    Fault::Place place_of(std::uint32_t pc, std::uint32_t thread) const;

    /// The inputs that the content of the register files depends on, except the constants.
    struct Filled {
        std::uint64_t code = 0;  ///< Code::serial
        const std::byte* registers = nullptr;
        std::uint32_t files = 0;
        Dim3 grid, block, cluster;
        std::uint64_t workspace = 0;
        std::uint32_t dynamic_shared_bytes = 0;
        bool explicit_cluster = false;
        bool operator==(const Filled&) const = default;
    };

    GridState* grid_ = nullptr;
    const program::Code* code_ = nullptr;
    const LaunchRequest* request_ = nullptr;
    Arena registers_, shared_, async_view_, local_;
    Filled filled_;
    std::vector<std::uint64_t> filled_constants_;
    races::AccessLog log_;
    std::vector<AllocationCache> caches_;
    /// Special registers that change for the first warp of a block, and those that change for its other warps.
    std::array<std::vector<program::Code::SpecialSlot>, 2> stale_specials_;
    std::vector<Warp> warps_;
    Lanes lanes_;
    Block block_;
    Cluster alone_;                                           ///< for a block without a cluster
    std::uint64_t steps_reported_ = 0, steps_elsewhere_ = 0;  ///< for blocks that wait for each other
    Dim3 placed_{0, 0, 0};                                    ///< the block shape of threads_
    std::vector<std::uint32_t> threads_[3];                   ///< coordinates by linear thread index
    bool cooperative_ = false;        ///< blocks of the grid or cluster wait for each other
    bool own_registers_ = false;      ///< one register file per warp, because warps may wait for each other
    std::uint32_t files_ = 1;         ///< register files; warps without their own take turns
    std::uint32_t most_in_step_ = 1;  ///< maximum number of warps in lockstep
};

}  // namespace emulated::machine
