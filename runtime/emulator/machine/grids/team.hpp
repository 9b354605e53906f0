// The blocks of one cluster, which run together. A block without a cluster is a team of one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "machine/blocks/block.hpp"

namespace emulated::machine {

/// Runs the blocks of a cluster in turns; reused for other clusters. Any thread may run it, but only one at a time.
class Team {
  public:
    /// Throws: std::bad_alloc.
    explicit Team(GridState& grid);

    /// The number of teams of a grid.
    static std::uint64_t count(const LaunchRequest& request) noexcept;
    /// Starts the team with this number, after the previous one has finished.
    void start(std::uint64_t number);
    /// Runs each unfinished block for one turn.
    Worker::Turn turn();
    /// Valid after `turn` returned `stuck`.
    Fault fault() { return stuck_->fault(); }

    /// The same functions as in Worker, for teams that wait for each other.
    bool made_progress() noexcept;
    void note_progress_elsewhere(std::uint64_t steps) noexcept { elsewhere_ = steps; }
    void give_log(races::AccessLog& to);

  private:
    const LaunchRequest& request_;
    std::vector<std::unique_ptr<Worker>> workers_;  ///< by rank
    Cluster cluster_;
    Worker* stuck_ = nullptr;
    std::uint64_t steps_ = 0, reported_ = 0, elsewhere_ = 0;
};

/// Runs a grid whose blocks wait for each other, with up to `workers` threads, until it ends or faults; the fault is in
/// `grid`. All blocks are resident and take turns: any thread may continue any block that is not running. Throws:
/// std::bad_alloc.
void run_together(GridState& grid, unsigned workers);

}  // namespace emulated::machine
