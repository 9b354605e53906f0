// The order among the threads of a block, and with those of other blocks, by happens-before. It follows from barriers,
// fences, and strong accesses, and not from the turns in which the device ran the threads.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "checks/order/clocks.hpp"
#include "checks/order/race_shadow.hpp"

namespace emulated::checks {

/// What strong writes to an address have published.
struct Published {
    std::array<Clock, 2> clocks;  ///< by scope
    std::uint32_t block = 0;      ///< whose threads see the clock of Scope::block
    std::uint64_t version = 0;    ///< unique for each publication
};

/// What the arrivals at an mbarrier handed over, in its current phase and in those before.
struct Phases {
    Knowledge current, complete;
    bool odd = false;  ///< the parity of the current phase
};

/// An asynchronous copy that its thread has not waited for.
struct PendingCopy {
    std::uint64_t to = 0, from = 0;  ///< 0: not to be watched
    std::uint32_t to_bytes = 0, from_bytes = 0, pc = 0, group = 0;
    bool is_bulk = false;
    std::uint8_t kind = 0;  ///< of the write
};

/// A strong access: its effect on the order.
struct StrongAccess {
    bool reads = false, writes = false;
    bool acquires = false, releases = false;
    Scope scope = Scope::device;
};

/// Lanes of a warp; `live` are those that have not exited.
struct WarpLanes {
    std::uint32_t warp = 0, lanes = 0, live = 0;
    bool all() const noexcept { return (live & ~lanes) == 0; }
};

/// The order of one block's threads. Full barriers of a block or a warp are one number each; anything else is in clocks.
class BlockOrder {
  public:
    /// A block starts. `number` is unique in the grid.
    void begin(std::uint32_t number, std::uint32_t threads);

    std::uint32_t number() const noexcept { return number_; }
    std::uint32_t epoch(std::uint32_t warp, std::uint32_t lane) const noexcept;
    /// All threads of the block, or all lanes of a warp, see what they did until this epoch.
    std::uint32_t seen() const noexcept { return seen_; }
    std::uint32_t seen(std::uint32_t warp) const noexcept { return warps_[warp].seen; }
    bool has_one_epoch(std::uint32_t warp) const noexcept { return warps_[warp].lanes == nullptr; }
    /// True if the accesses precede what the thread does now.
    bool precedes(const Accesses& earlier, std::uint32_t warp, std::uint32_t lane) const noexcept;

    /// All threads that have not exited pass a barrier.
    void pass_barrier();
    /// Some threads pass a barrier, to which others only arrived.
    void pass_barrier(const std::vector<WarpLanes>& waiting, std::uint32_t id);
    void arrive_at_barrier(const WarpLanes& lanes, std::uint32_t id);
    /// These lanes pass bar.warp.sync.
    void pass_warp_barrier(const WarpLanes& lanes);
    void fence(const WarpLanes& lanes, bool acquires, bool releases, Scope scope);
    /// What these lanes know, for others; they start a new epoch.
    Knowledge release(const WarpLanes& lanes);
    /// What a relaxed arrival of these lanes hands over: what preceded their fences.
    Knowledge release_fenced(const WarpLanes& lanes) const;
    void acquire(const WarpLanes& lanes, const Knowledge& given);
    /// The knowledge of one lane's accesses so far, without those of others.
    Knowledge own(std::uint32_t warp, std::uint32_t lane) const;
    /// A strong access of a lane to one of the addresses with publications. Returns how many entries it published.
    using Publications = std::unordered_map<std::uint64_t, Published>;
    std::size_t access(Publications& all, std::uint64_t address, std::uint32_t warp, std::uint32_t lane,
                       const StrongAccess& access);

    // The lane's asynchronous copies.
    std::vector<PendingCopy>& copies(std::uint32_t warp, std::uint32_t lane) {
        return lane_of(warp, lane).copies;
    }
    bool has_copies(std::uint32_t warp) const noexcept { return warps_[warp].lanes != nullptr; }
    /// Groups of cp.async, and bulk groups, that the lane has committed.
    std::uint32_t& committed(std::uint32_t warp, std::uint32_t lane, bool bulk) {
        return lane_of(warp, lane).committed[bulk ? 1 : 0];
    }

    const std::byte* shared = nullptr;
    std::vector<Cell> cells;    ///< of shared memory
    Publications publications;  ///< by offset in shared memory
    std::unordered_map<std::uint32_t, Phases> mbarriers;

  private:
    struct Lane {
        std::uint32_t epoch = 0;
        Knowledge known;
        std::uint64_t taken = 0;  // the publication that it read last, twice, and 1 if it acquired that
        std::vector<PendingCopy> copies;
        std::array<std::uint32_t, 2> committed{};
    };
    struct Warp {
        std::uint32_t epoch = 0;
        std::uint32_t seen = 0;  ///< all its lanes see what they did until this epoch
        Knowledge known;
        std::unique_ptr<std::array<Lane, 32>> lanes;  ///< null: the lanes have done all together
    };

    Lane& lane_of(std::uint32_t warp, std::uint32_t lane);
    Clock seen_by(std::uint32_t warp, std::uint32_t lane) const;
    template <class Of>
    Clock joined(std::uint32_t warp, std::uint32_t lane, const Of& of) const;
    void start_epoch(const WarpLanes& lanes);
    void gather(const WarpLanes& lanes, Knowledge& into);

    std::uint32_t number_ = 0, threads_ = 0;
    static inline thread_local std::uint64_t last_version_ = 0;
    std::uint32_t time_ = 0;   // the last epoch of any thread
    std::uint32_t epoch_ = 0;  // all threads' since the last barrier
    std::uint32_t seen_ = 0;
    bool has_fences_ = false;  // a thread has something to publish or to await
    Knowledge known_;
    std::vector<Warp> warps_;
    std::unordered_map<std::uint32_t, Knowledge> arrived_;  // by the number of a barrier
};

}  // namespace emulated::checks
