// Detects blocks that never end, and ends kernels that exceed their time or are no longer wanted.
#pragma once

#include <chrono>
#include <cstdint>

#include "machine/grid.hpp"
#include "machine/lanes.hpp"
#include "races/access_log.hpp"

namespace emulated::machine {

/// Watches the block that a worker runs. A block makes progress when one of its threads ends or writes a byte of global
/// memory for the first time; both are bounded. First writes are recorded only after the block has run for a while without
/// progress, so that other blocks pay nothing. Passing barriers, calling functions and printing are not progress, because
/// an endless loop does these too. The limit is one of time that has passed; up to four times as much may pass while the thread gets
/// little processor time. Owned by the worker and used only in its thread.
class Watchdog {
  public:
    using Clock = std::chrono::steady_clock;

    /// Called when a block of `grid` starts on `lanes`. Both are borrowed until `stop`.
    void start(GridState& grid, Lanes& lanes);
    /// Called when the block ends. Recorded accesses move to the log of the search for races, if there is one.
    void stop() {
        if (remembers_) forget_writes();
    }

    void note_progress() noexcept { ++steps_; }
    /// The amount of progress; never decreases.
    std::uint64_t steps() const noexcept { return steps_; }

    /// The reason to end the block, or LaneFault::What::none. Reads the clock.
    LaneFault::What look();

  private:
    void forget_writes();
    void look_for_writes(Clock::time_point now);

    GridState* grid_ = nullptr;
    Lanes* lanes_ = nullptr;
    std::uint64_t steps_ = 0, steps_seen_ = 0;
    Clock::time_point progress_;  ///< when the last progress was noticed
    Clock::time_point asked_;     ///< when the launch was last asked whether it is still wanted
    bool remembers_ = false;      ///< `written_` is in use
    races::AccessLog written_;
    races::AccessLog* usual_log_ = nullptr;  ///< the log of `lanes` while it is replaced by `written_`
    std::uint64_t written_bytes_ = 0;        ///< in `written_` at the last count
    Clock::time_point counted_;
    std::chrono::nanoseconds
        used_{};  ///< the thread's processor time at the last progress that was noticed while `remembers_`
};

}  // namespace emulated::machine
