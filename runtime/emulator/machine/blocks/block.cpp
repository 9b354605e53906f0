// Runs the warps of a block in turns until all have exited.
#include "machine/blocks/block.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <sys/mman.h>

#include "machine/lockstep.hpp"
#include "machine/observer.hpp"

namespace emulated::machine {
namespace {

using program::Code;

// The maximum size of all register files in lockstep. They fit in the processor's L2 cache, which is fast enough.
constexpr std::uint32_t registers_in_lockstep = 192 * 1024;
// The maximum number of register files that warps share. More gain little, and each must be filled.
constexpr std::uint32_t most_shared_files = 8;

std::uint32_t round_up(std::uint32_t value, std::uint32_t to) { return (value + to - 1) / to * to; }

// The size of a thread's stack, for functions that can be re-entered.
std::uint64_t stack_bytes(const LaunchRequest& request) {
    constexpr std::uint64_t most = program::window_bytes / 2;
    return std::clamp<std::uint64_t>((request.stack_bytes + 15) / 16 * 16, program::least_stack_bytes, most);
}

Dim3 block_at(const Dim3& grid, std::uint64_t linear) {
    return {static_cast<std::uint32_t>(linear % grid.x), static_cast<std::uint32_t>(linear / grid.x % grid.y),
            static_cast<std::uint32_t>(linear / grid.x / grid.y)};
}

// True if the warp only yielded, so that it can run again.
bool has_ready(const Warp& warp) {
    return std::ranges::find(warp.groups, Group::State::ready, &Group::state) != warp.groups.end();
}

}  // namespace

Arena::~Arena() {
    if (data_) munmap(data_, capacity_);
}

std::byte* Arena::take(std::size_t bytes) {
    if (bytes <= capacity_) return data_;
    constexpr std::size_t page = 4096;
    bytes = (bytes + page - 1) / page * page;
    void* pages =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    if (data_) munmap(data_, capacity_);
    data_ = static_cast<std::byte*>(pages);
    capacity_ = bytes;
    return data_;
}

void Worker::begin(GridState& grid) {
    block_.watchdog.stop();
    grid_ = &grid;
    code_ = grid.code;
    request_ = grid.request;
    cooperative_ = request_->workspace != 0 || request_->cluster.count() > 1;
    own_registers_ = code_->has_barrier || code_->may_spin || cooperative_;
    block_.grid = &grid;
    block_.threads = request_->block.x * request_->block.y * request_->block.z;
    const std::uint32_t count = (block_.threads + 31) / 32;
    block_.warps_take_turns = own_registers_ && (count > 1 || cooperative_);
    block_.most_rounds = cooperative_ ? least_cooperative_budget : ~0u;

    // An odd number of cache lines per warp puts the same register of different warps into different cache sets.
    const std::uint32_t file = (round_up(code_->register_bytes, 64) / 64 | 1u) * 64;
    most_in_step_ = std::clamp<std::uint32_t>(registers_in_lockstep / file, 1,
                                              own_registers_ ? count : std::min(count, most_shared_files));
    if (request_->observers != nullptr) most_in_step_ = 1;
    files_ = own_registers_ ? count : most_in_step_;
    std::byte* registers = registers_.take(std::size_t{file} * files_);
    const std::uint32_t shared_bytes = code_->shared_bytes + request_->dynamic_shared_bytes;
    caches_.assign(code_->caches, {});
    warps_.resize(count);
    for (std::uint32_t w = 0; w < count; ++w) {
        warps_[w].index = w;
        const std::uint32_t left = block_.threads - 32 * w;
        warps_[w].exists = left >= 32 ? ~0u : (1u << left) - 1;
        warps_[w].registers = registers + std::size_t{w % files_} * file;
    }
    if (placed_ != request_->block) place_threads();
    fill_registers();
    find_stale_specials();
    lanes_.observers = request_->observers;
    lanes_.code = lanes_.alone_code = code_->instructions.data();
    lanes_.file_bytes = file;
    lanes_.lists = code_->lists.data();
    lanes_.caches = caches_.data();
    lanes_.memory = request_->memory;
    static int wide_lock = 0;
    lanes_.wide_lock = &wide_lock;
    lanes_.log = request_->log == nullptr ? nullptr : &log_;
    lanes_.shared = shared_.take(shared_bytes + 1);
    lanes_.shared_bytes = shared_bytes;
    lanes_.local_bytes = code_->local_bytes + (code_->has_stack ? stack_bytes(*request_) : 0);
    lanes_.parameters = request_->parameters;
    lanes_.parameter_bytes = request_->kernel->parameter_bytes;
    lanes_.block = &block_;
    lanes_.alone_budget = grid.alone_budget;
    lanes_.until_look = grid.alone_budget;
    local_.take(lanes_.local_bytes * 32 * count + 1);
}

void Worker::start(std::span<Warp> warps) const {
    for (Warp& warp : warps) {
        if (warp.has_transfers) {
            warp.has_transfers = false;
            warp.copies.clear();
            warp.bulk_groups = {};
        }
        warp.cluster_arrived = 0;
        if (warp.products) warp.products->clear();
        warp.thread_registers = 0;
        warp.exited = 0;
        warp.met_after_exits = ~0u;
        warp.followed = 0;
        warp.groups.clear();
        warp.groups.emplace_back().mask = warp.exists;
    }
    for (const Code::SpecialSlot& slot : stale_specials_[warps.front().index != 0]) fill_special(slot, warps);
    if (request_->observers != nullptr) request_->observers->begin_warps(block_, warps);
}

void Worker::place_local(const Warp& warp) {
    lanes_.local = local_.take(0) + std::size_t{warp.index} * 32 * lanes_.local_bytes;
}

bool Worker::run(Warp& warp) {
    place_local(warp);
    return run_warp(lanes_, warp);
}

std::optional<Fault> Worker::run_block(std::uint64_t linear) {
    alone_.begin(1);
    place_block(block_at(request_->grid, linear), alone_);
    std::optional<Fault> found;
    if (!run_all()) found = fault();
    alone_.end();
    block_.watchdog.stop();
    return found;
}

void Worker::start_block(const Dim3& index, Cluster& cluster) {
    place_block(index, cluster);
    start(warps_);
}

void Worker::place_block(const Dim3& index, Cluster& cluster) {
    block_.index = index;
    block_.cluster = &cluster;
    cluster.observers = request_->observers;
    block_.rank = rank_in(request_->cluster, index);
    Cluster::Member& member = cluster.members[block_.rank];
    member = {lanes_.shared, lanes_.shared_bytes, &warps_};
    if (code_->reads_shared_async) {
        member.async_view = async_view_.take(lanes_.shared_bytes + 1);
        // The same bytes in each block, so that what a store leaves there differs from what an earlier block left.
        std::memset(member.shared, poison_byte, member.shared_bytes);
        std::memset(member.async_view, poison_byte, member.shared_bytes);
    }
    block_.open_phase.reset();
    block_.watchdog.start(*grid_, lanes_);
    block_.barriers_passed = 0;
    block_.free_registers = 0;
    if (request_->observers != nullptr) request_->observers->begin_block(block_, lanes_);
    if (!code_->has_barrier) return;
    block_.arrived.fill(0);
    block_.votes.fill({});
}

// Returns false after a fault, or if no warp can continue.
bool Worker::run_all() {
    if (own_registers_) {
        start(warps_);
        Turn last = turn();
        while (last == Turn::goes_on || last == Turn::waits) last = turn();
        return last == Turn::done;
    }
    for (std::size_t w = 0; w < warps_.size(); w += files_) {
        const std::span<Warp> warps =
            std::span(warps_).subspan(w, std::min<std::size_t>(files_, warps_.size() - w));
        start(warps);
        for (;;) {
            if (!run_once(warps)) return false;
            if (!has_ready(warps.front())) break;
        }
        lanes_.stop = Stop::none;
        if (std::ranges::any_of(warps, [](const Warp& warp) { return warp.exited != warp.exists; }))
            return false;
    }
    return true;
}

// Runs each of these warps until it ends, waits or yields; in lockstep if possible.
bool Worker::run_once(std::span<Warp> warps) {
    while (!warps.empty()) {
        const std::span<Warp> together = warps.first(count_in_step(warps));
        warps = warps.subspan(together.size());
        if (together.size() > 1) {
            place_local(together.front());
            if (!run_in_lockstep(lanes_, together)) continue;
            // The warp that cannot continue like the others runs first. If lockstep ended at its fault, it faults again.
            if (!run(together[lanes_.went_on])) return false;
        }
        for (Warp& warp : together) {
            if (!run(warp)) return false;
        }
    }
    return true;
}

// The number of warps from the first on that can run in lockstep; 1 if the first cannot.
std::size_t Worker::count_in_step(std::span<const Warp> warps) const {
    std::size_t count = 0;
    while (count < std::min<std::size_t>(warps.size(), most_in_step_) && can_run_in_lockstep(warps[count]) &&
           warps[count].groups.front().pc == warps.front().groups.front().pc)
        ++count;
    return std::max<std::size_t>(count, 1);
}

Worker::Turn Worker::turn() {
    bool done = true, ready = false;
    if (!run_once(warps_)) return Turn::stuck;
    for (const Warp& warp : warps_) {
        done = done && warp.exited == warp.exists;
        ready = ready || has_ready(warp);
    }
    if (done) return Turn::done;
    lanes_.stop = Stop::none;
    if (block_.free_registers != 0 && release_registers()) return Turn::goes_on;
    const bool is_alone = block_.cluster->members.size() == 1;
    if (release_whole_block() || release_barriers() || (is_alone && block_.cluster->release())) {
        ++block_.barriers_passed;
        if (cooperative_) block_.most_rounds = least_cooperative_budget;
        return Turn::goes_on;
    }
    if (cooperative_) block_.most_rounds = std::min(2 * block_.most_rounds, most_cooperative_budget);
    return ready ? Turn::waits : Turn::stuck;
}

// Releases a barrier and starts its next phase. The counts of the completed phase stay readable.
void Worker::let_go(std::uint32_t barrier) {
    block_.arrived[barrier] = 0;
    block_.counted[barrier] = std::exchange(block_.votes[barrier], {});
}

// Releases the barrier in the common case: all running warps wait at it with all their lanes, and it has no thread
// count.
bool Worker::release_whole_block() {
    std::uint32_t id = ~0u;
    for (const Warp& warp : warps_) {
        if (warp.groups.empty()) continue;
        const Group& group = warp.groups.front();
        if (warp.groups.size() != 1 || group.state != Group::State::barrier || group.barrier_count != 0)
            return false;
        if (id != ~0u && group.barrier != id) return false;
        id = group.barrier;
    }
    if (id == ~0u) return false;
    if (request_->observers != nullptr) request_->observers->pass_barrier(block_, warps_, id);
    let_go(id);
    for (Warp& warp : warps_) {
        if (!warp.groups.empty()) warp.groups.front().state = Group::State::ready;
    }
    return true;
}

// Lets one warp continue if the registers that it waits for are free now. Returns false if there is none.
bool Worker::release_registers() {
    for (Warp& warp : warps_) {
        for (Group& group : warp.groups) {
            if (group.state != Group::State::registers || group.barrier_count > block_.free_registers)
                continue;
            group.state = Group::State::ready;
            return true;
        }
    }
    return false;
}

// Releases each barrier at which enough threads have arrived. Exited threads count too, as on hardware, unless the
// barrier has a thread count.
bool Worker::release_barriers() {
    std::array<std::uint32_t, 16> waiting{}, wanted{};
    std::uint32_t exited = 0;
    for (const Warp& warp : warps_) {
        exited += static_cast<std::uint32_t>(__builtin_popcount(warp.exited));
        for (const Group& group : warp.groups) {
            if (group.state != Group::State::barrier) continue;
            waiting[group.barrier] += static_cast<std::uint32_t>(__builtin_popcount(group.mask));
            if (group.barrier_count != 0) wanted[group.barrier] = group.barrier_count;
        }
    }
    bool released = false;
    for (std::uint32_t id = 0; id < 16; ++id) {
        if (waiting[id] == 0) continue;
        const bool counted = wanted[id] != 0;
        const std::uint32_t there = waiting[id] + block_.arrived[id] + (counted ? 0 : exited);
        if (there < (counted ? wanted[id] : block_.threads)) continue;
        released = true;
        if (request_->observers != nullptr) request_->observers->pass_barrier(block_, warps_, id);
        let_go(id);
        for (Warp& warp : warps_) {
            for (Group& group : warp.groups) {
                if (group.state == Group::State::barrier && group.barrier == id)
                    group.state = Group::State::ready;
            }
        }
    }
    return released;
}

}  // namespace emulated::machine
