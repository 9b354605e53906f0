// The blocks of one cluster, which run together. A block without a cluster is a team of one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "machine/blocks/block.hpp"

namespace emulated::machine {

/// Keeps its blocks and gives each its turn. Any thread may go on with it, one at a time.
class Team {
  public:
    /// Throws: std::bad_alloc.
    explicit Team(GridState& grid);

    /// How many teams a grid is shared out to.
    static std::uint64_t count(const LaunchRequest& request) noexcept;
    /// Begins the team with this number, after the one before is over.
    void start(std::uint64_t number);
    /// A turn for each block that goes on.
    Worker::Turn turn();
    /// After a turn that was stuck.
    Fault fault() { return stuck_->fault(); }

    /// As of a Worker, for teams that wait for each other.
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

}  // namespace emulated::machine
