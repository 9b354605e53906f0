#include "machine/watchdog.hpp"

#include <ctime>
#include <utility>

namespace emulated::machine {
namespace {

std::chrono::nanoseconds processor_time_of_thread() noexcept {
    timespec used{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

}  // namespace

void Watchdog::start(GridState& grid, Lanes& lanes) {
    stop();
    grid_ = &grid;
    lanes_ = &lanes;
    note_progress();
}

void Watchdog::forget_writes() {
    remembers_ = false;
    lanes_->log = usual_log_;
    if (usual_log_ != nullptr) usual_log_->take(written_);
    written_.clear();
}

LaneFault::What Watchdog::look() {
    using What = LaneFault::What;
    constexpr std::chrono::milliseconds between_questions{1};
    const Clock::time_point now = Clock::now();
    const LaunchRequest& request = *grid_->request;
    if (request.cancelled && now - asked_ >= between_questions) {
        asked_ = now;
        if (request.cancelled()) grid_->cancelled = true;
    }
    if (grid_->cancelled.load(std::memory_order_relaxed)) return What::cancelled;
    if (now >= grid_->deadline) return What::over_time;
    if (request.limits.total != TimeLimits::none) return What::none;
    if (std::exchange(steps_seen_, steps_) != steps_) {
        progress_ = now;
        if (remembers_) used_ = processor_time_of_thread();
    }
    const auto limit = request.limits.idle;
    if (now - progress_ >= limit / 4) look_for_writes(now);
    if (now - progress_ < limit) return What::none;
    // On a busy machine the thread may have run for a small part of that time.
    const bool has_run = processor_time_of_thread() - used_ >= limit / 4;
    return has_run || now - progress_ >= 4 * limit ? What::idle : What::none;
}

// Counting is slow if much was written, so not every look counts.
void Watchdog::look_for_writes(Clock::time_point now) {
    if (!std::exchange(remembers_, true)) {
        usual_log_ = std::exchange(lanes_->log, &written_);
        written_bytes_ = 0;
        counted_ = now;
        used_ = processor_time_of_thread();
        return;
    }
    const auto idle = grid_->request->limits.idle;
    if (now - counted_ < idle / 16 && now - progress_ < idle) return;
    counted_ = now;
    const std::uint64_t written = written_.written_bytes();
    if (written == std::exchange(written_bytes_, written)) return;
    progress_ = now;
    used_ = processor_time_of_thread();
    steps_seen_ = ++steps_;
}

}  // namespace emulated::machine
