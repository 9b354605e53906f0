// Runs a grid: workers take blocks until none are left or one has failed.
#include "machine/grids/launch.hpp"

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include <fmt/format.h>

#include "machine/blocks/block.hpp"
#include "machine/grids/crew.hpp"
#include "machine/grids/team.hpp"
#include "machine/lockstep.hpp"
#include "machine/observer.hpp"
#include "machine/registry.hpp"
#include "machine/warp.hpp"

namespace emulated::machine {
namespace {

// Handlers depend on the processor, so they are looked up here and not when the code is translated.
void link(const program::Code& code) {
    std::call_once(code.linked, [&] {
        for (std::size_t i = 0; i < code.instructions.size(); ++i) {
            const Handler handler = registry().find(code.keys[i]).handler;
            if (!handler)
                throw std::logic_error(fmt::format("no handler for PTX line {}", code.lines[i].ptx));
            code.instructions[i].handler = reinterpret_cast<void (*)()>(handler);
        }
        link_lockstep(code);
        static std::atomic<std::uint64_t> last = 0;
        code.serial = ++last;
    });
}

/// A thread's worker, whose memory the next launch reuses. Destructors of static objects may launch after it is destroyed.
thread_local bool worker_is_gone = false;
struct OwnWorker {
    ~OwnWorker() { worker_is_gone = true; }
    Worker worker;
};

void run_blocks(GridState& grid, Worker& worker) {
    for (;;) {
        const std::uint64_t block = grid.next_block.fetch_add(1, std::memory_order_relaxed);
        if (block >= grid.blocks || grid.cancelled.load(std::memory_order_relaxed)) return;
        auto fault = worker.run_block(block);
        if (fault) return grid.fail(std::move(*fault));
    }
}

// Runs clusters. One thread runs all blocks of a cluster, so their shared memory needs no locks.
void run_clusters(GridState& grid) {
    Team team(grid);
    for (;;) {
        const std::uint64_t number = grid.next_block.fetch_add(1, std::memory_order_relaxed);
        if (number >= Team::count(*grid.request) || grid.cancelled.load(std::memory_order_relaxed)) break;
        team.start(number);
        Worker::Turn turn = team.turn();
        while (turn == Worker::Turn::goes_on || turn == Worker::Turn::waits) turn = team.turn();
        if (turn == Worker::Turn::stuck) {
            grid.fail(team.fault());
            break;
        }
    }
    if (grid.request->log == nullptr) return;
    const std::lock_guard lock(grid.mutex);
    team.give_log(*grid.request->log);
}

void take_blocks(GridState& grid, Worker& worker) {
    worker.begin(grid);
    run_blocks(grid, worker);
    if (grid.request->log == nullptr) return;
    const std::lock_guard lock(grid.mutex);
    worker.give_log(*grid.request->log);
}

// The work of one host thread: runs blocks or whole clusters of the grid until none is left.
void take_blocks(GridState& grid) {
    if (grid.request->cluster.count() > 1) return run_clusters(grid);
    if (worker_is_gone) {
        Worker worker;
        return take_blocks(grid, worker);
    }
    static thread_local OwnWorker own;
    take_blocks(grid, own.worker);
}

// The fault for a cancellation that was noticed between blocks.
Fault cancelled_before_a_block(const LaunchRequest& request) {
    Fault fault;
    fault.kind = Fault::Kind::cancelled;
    fault.kernel = request.kernel->name;
    return fault;
}

}  // namespace

std::optional<Fault> launch(const LaunchRequest& request) {
    const program::Code& code = *request.kernel->code;
    link(code);
    if (request.observers != nullptr) request.observers->observe(code);
    GridState grid;
    grid.request = &request;
    grid.code = &code;
    const auto now = Watchdog::Clock::now();
    if (request.limits.total < Watchdog::Clock::time_point::max() - now)
        grid.deadline = now + request.limits.total;
    grid.alone_budget = std::clamp<std::uint32_t>(
        static_cast<std::uint32_t>(instructions_between_looks /
                                   std::max<std::size_t>(code.instructions.size(), 1)),
        1, most_alone_budget);
    grid.blocks = std::uint64_t{request.grid.x} * request.grid.y * request.grid.z;
    // One thread runs what is observed, so that observers need no locks and a program's reports are the same in every run.
    const std::uint64_t workers =
        request.observers != nullptr ? 1 : std::min<std::uint64_t>(request.workers, Team::count(request));
    if (request.workspace != 0) {
        run_together(grid, static_cast<unsigned>(workers));
    } else if (workers > 1) {
        Crew::get().work([&grid] { take_blocks(grid); }, static_cast<unsigned>(workers),
                         [&grid] { grid.ask(); });
    } else {
        take_blocks(grid);
    }
    if (grid.cancelled && !grid.fault) return cancelled_before_a_block(request);
    return std::move(grid.fault);
}

}  // namespace emulated::machine
