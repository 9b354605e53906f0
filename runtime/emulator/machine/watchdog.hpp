// Finds blocks that never end, and ends kernels that have run for too long or are no longer wanted.
#pragma once

#include <chrono>
#include <cstdint>

#include "machine/grid.hpp"
#include "machine/lanes.hpp"
#include "races/access_log.hpp"

namespace emulated::machine {

/// Watches the block that a worker runs. A block makes progress when one of its threads ends, and when it writes
/// a byte of global memory that it has not written before; both can happen only so often. It remembers what it
/// writes only after it has run for a while without either, so that other blocks pay nothing. Passing barriers,
/// calling functions and printing are not progress: an endless loop does all of it.
/// Owned by the worker and used by its thread only.
class Watchdog {
  public:
    using Clock = std::chrono::steady_clock;

    /// A block of `grid` begins, which `lanes` run. Both are borrowed until `stop`.
    void start(GridState& grid, Lanes& lanes);
    /// The block is over: what it wrote goes to the log of the search for races, if there is one.
    void stop() {
        if (remembers_) forget_writes();
    }

    void note_progress() noexcept { ++steps_; }
    /// Counts progress; never decreases.
    std::uint64_t steps() const noexcept { return steps_; }

    /// What there is to say against the block, `LaneFault::What::none` if nothing. Reads the clock.
    LaneFault::What look();

  private:
    void forget_writes();
    void look_for_writes(Clock::time_point now);

    GridState* grid_ = nullptr;
    Lanes* lanes_ = nullptr;
    std::uint64_t steps_ = 0, steps_seen_ = 0;
    Clock::time_point progress_;  ///< when the last look noticed some
    Clock::time_point asked_;     ///< when the launch was last asked whether it is still wanted
    bool remembers_ = false;      ///< `written_` is in use
    races::AccessLog written_;
    races::AccessLog* usual_log_ = nullptr;  ///< of `lanes`, while it writes to `written_`
    std::uint64_t written_bytes_ = 0;        ///< in `written_`, when they were last counted
    Clock::time_point counted_;
};

}  // namespace emulated::machine
