#include "machine/grids/team.hpp"

#include <utility>

namespace emulated::machine {

Team::Team(GridState& grid) : request_(*grid.request) {
    const std::uint64_t blocks = request_.cluster.count();
    for (std::uint64_t rank = 0; rank < blocks; ++rank) {
        workers_.push_back(std::make_unique<Worker>());
        workers_.back()->begin(grid);
    }
}

std::uint64_t Team::count(const LaunchRequest& request) noexcept {
    return request.grid.count() / request.cluster.count();
}

// All blocks are initialised before the first one runs.
void Team::start(std::uint64_t number) {
    const Dim3 &size = request_.cluster, &grid = request_.grid;
    const std::uint64_t across = grid.x / size.x, down = grid.y / size.y;
    const Dim3 first{static_cast<std::uint32_t>(number % across) * size.x,
                     static_cast<std::uint32_t>(number / across % down) * size.y,
                     static_cast<std::uint32_t>(number / across / down) * size.z};
    cluster_.begin(workers_.size());
    std::size_t rank = 0;
    for (std::uint32_t z = 0; z < size.z; ++z) {
        for (std::uint32_t y = 0; y < size.y; ++y) {
            for (std::uint32_t x = 0; x < size.x; ++x)
                workers_[rank++]->start_block({first.x + x, first.y + y, first.z + z}, cluster_);
        }
    }
}

Worker::Turn Team::turn() {
    using Turn = Worker::Turn;
    bool done = true, went_on = false, waits = false;
    stuck_ = nullptr;
    for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
        if (cluster_.members[rank].ended) continue;
        Worker& worker = *workers_[rank];
        worker.note_progress_elsewhere(steps_ + elsewhere_);
        const Turn turn = worker.turn();
        if (worker.made_progress()) ++steps_;
        if (turn == Turn::stuck && worker.has_fault()) {
            stuck_ = &worker;
            return turn;
        }
        cluster_.members[rank].ended = turn == Turn::done;
        done = done && turn == Turn::done;
        went_on = went_on || turn == Turn::goes_on || turn == Turn::done;
        waits = waits || turn == Turn::waits;
        if (turn == Turn::stuck && stuck_ == nullptr) stuck_ = &worker;
    }
    if (done) {
        cluster_.end();
        return Turn::done;
    }
    if (went_on || cluster_.release()) return Turn::goes_on;
    return waits ? Turn::waits : Turn::stuck;
}

bool Team::made_progress() noexcept { return std::exchange(reported_, steps_) != steps_; }

void Team::give_log(races::AccessLog& to) {
    for (const auto& worker : workers_) worker->give_log(to);
}

}  // namespace emulated::machine
