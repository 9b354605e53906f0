// Grids whose blocks wait for each other.
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "machine/grids/crew.hpp"
#include "machine/grids/team.hpp"

namespace emulated::machine {
namespace {

/// The blocks of one grid, by clusters. A team is queued, run by one thread, or finished.
class Residents {
  public:
    explicit Residents(GridState& grid) : grid_(grid), left_(Team::count(*grid.request)) {
        for (std::uint64_t number = 0; number < left_; ++number) {
            teams_.push_back(std::make_unique<Team>(grid));
            teams_.back()->start(number);
            waiting_.push_back(teams_.back().get());
        }
    }

    /// The work of one thread: runs teams in turns until all are finished. Other threads may join late or not at all. A
    /// block that only passes barriers or only loops may wait for another block, so its turn ends.
    void take_turns() {
        while (Team* team = next()) {
            Worker::Turn turn = team->turn();
            for (unsigned more = most_turns; turn == Worker::Turn::goes_on && more > 0; --more)
                turn = team->turn();
            if (turn == Worker::Turn::stuck) return grid_.fail(team->fault());
            give_back(turn == Worker::Turn::done ? nullptr : team);
        }
    }

    /// Adds the teams' logs of accesses to `log`. Called when no thread runs a block any more.
    void give_logs(races::AccessLog& log) {
        for (const auto& team : teams_) team->give_log(log);
    }

  private:
    static constexpr unsigned most_turns = 64;

    /// The next team; null if all are finished or the grid is cancelled. Waits while other threads run all teams.
    Team* next() {
        for (;;) {
            {
                const std::lock_guard lock(mutex_);
                if (left_ == 0 || grid_.cancelled.load(std::memory_order_relaxed)) return nullptr;
                if (!waiting_.empty()) {
                    Team* team = waiting_.front();
                    waiting_.pop_front();
                    // The team may have waited for any other block's step.
                    team->note_progress_elsewhere(steps_);
                    return team;
                }
            }
            grid_.ask();
            std::this_thread::yield();  // other threads run all teams
        }
    }

    /// Queues the team for its next turn. A null `team` means that one has finished.
    void give_back(Team* team) {
        const std::lock_guard lock(mutex_);
        if (team == nullptr) {
            --left_;
            ++steps_;
            return;
        }
        if (team->made_progress()) ++steps_;
        waiting_.push_back(team);
    }

    GridState& grid_;
    std::vector<std::unique_ptr<Team>> teams_;
    std::mutex mutex_;  // guards the members below
    std::deque<Team*> waiting_;
    std::uint64_t left_;
    std::uint64_t steps_ = 0;  // progress of all blocks, in the watchdog's count
};

}  // namespace

void run_together(GridState& grid, unsigned workers) {
    Residents residents(grid);
    if (workers > 1) {
        Crew::get().work([&residents] { residents.take_turns(); }, workers, [&grid] { grid.ask(); });
    } else {
        residents.take_turns();
    }
    if (grid.request->log != nullptr) residents.give_logs(*grid.request->log);
}

}  // namespace emulated::machine
