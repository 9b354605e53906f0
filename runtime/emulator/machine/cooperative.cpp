#include "machine/cooperative.hpp"

#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "machine/block.hpp"
#include "machine/crew.hpp"

namespace emulated::machine {
namespace {

/// The blocks of one grid. A block is in the queue, or one thread has it, or it is over.
class Residents {
  public:
    explicit Residents(GridState& grid) : grid_(grid), left_(grid.blocks) {
        for (std::uint64_t block = 0; block < grid.blocks; ++block) {
            workers_.push_back(std::make_unique<Worker>());
            workers_.back()->begin(grid);
            workers_.back()->start_block(block);
            waiting_.push_back(workers_.back().get());
        }
    }

    /// What one thread does. Helpers may come late or not at all. A block that only passes barriers may wait for
    /// another one, as one that only loops may.
    void take_turns() {
        while (Worker* worker = next()) {
            Worker::Turn turn = worker->turn();
            for (unsigned more = most_turns; turn == Worker::Turn::goes_on && more > 0; --more)
                turn = worker->turn();
            if (turn == Worker::Turn::stuck) return grid_.fail(worker->fault());
            give_back(turn == Worker::Turn::done ? nullptr : worker);
        }
    }

    /// No worker runs a block any more.
    void give_logs(races::AccessLog& log) {
        for (const auto& worker : workers_) worker->give_log(log);
    }

  private:
    static constexpr unsigned most_turns = 64;

    /// Null when nothing is left to do.
    Worker* next() {
        for (;;) {
            {
                const std::lock_guard lock(mutex_);
                if (left_ == 0 || grid_.cancelled.load(std::memory_order_relaxed)) return nullptr;
                if (!waiting_.empty()) {
                    Worker* worker = waiting_.front();
                    waiting_.pop_front();
                    // Any block's step may be what this one waits for.
                    worker->note_progress_elsewhere(steps_);
                    return worker;
                }
            }
            grid_.ask();
            std::this_thread::yield();  // others have them all
        }
    }

    /// `worker` is null for a block that is over.
    void give_back(Worker* worker) {
        const std::lock_guard lock(mutex_);
        if (worker == nullptr) {
            --left_;
            ++steps_;
            return;
        }
        if (worker->made_progress()) ++steps_;
        waiting_.push_back(worker);
    }

    GridState& grid_;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::mutex mutex_;  // of what follows
    std::deque<Worker*> waiting_;
    std::uint64_t left_;
    std::uint64_t steps_ = 0;  // of all blocks, as the watchdog counts them
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
