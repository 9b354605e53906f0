#include "checks/order/race_order.hpp"

#include <algorithm>
#include <bit>

#include "machine/registers.hpp"

namespace emulated::checks {

using machine::LanesOf;

void BlockOrder::begin(std::uint32_t number, std::uint32_t threads) {
    number_ = number;
    threads_ = threads;
    time_ = epoch_ = 1;
    seen_ = 0;
    has_fences_ = false;
    known_.clear();
    warps_.clear();
    warps_.resize((threads + 31) / 32);
    arrived_.clear();
    publications.clear();
    mbarriers.clear();
}

BlockOrder::Lane& BlockOrder::lane_of(std::uint32_t warp, std::uint32_t lane) {
    auto& lanes = warps_[warp].lanes;
    if (lanes == nullptr) lanes = std::make_unique<std::array<Lane, 32>>();
    return (*lanes)[lane];
}

std::uint32_t BlockOrder::epoch(std::uint32_t warp, std::uint32_t lane) const noexcept {
    const Warp& of = warps_[warp];
    const std::uint32_t shared_by_warp = std::max(epoch_, of.epoch);
    return of.lanes == nullptr ? shared_by_warp : std::max(shared_by_warp, (*of.lanes)[lane].epoch);
}

bool BlockOrder::precedes(const Accesses& earlier, std::uint32_t warp, std::uint32_t lane) const noexcept {
    const Warp& own = warps_[warp];
    std::uint32_t others = earlier.lanes;
    if (earlier.block == number_) {
        if (earlier.epoch <= seen_) return true;
        if (earlier.warp == warp) {
            others &= ~(1u << lane);
            if (earlier.epoch <= own.seen || others == 0) return true;
        }
    }
    const Clock* clocks[] = {&known_.seen, &own.known.seen,
                             own.lanes == nullptr ? nullptr : &(*own.lanes)[lane].known.seen};
    for (const unsigned other : LanesOf{others}) {
        const ThreadId thread{earlier.block, earlier.warp, other};
        if (std::ranges::none_of(clocks, [&](const Clock* clock) {
                return clock != nullptr && clock->has(thread, earlier.epoch);
            }))
            return false;
    }
    return true;
}

// --- barriers ----------------------------------------------------------------------------------------------

// The common case: nothing but the number of the epoch changes.
void BlockOrder::pass_barrier() {
    for (Warp& warp : warps_) {
        if (!warp.known.empty()) {
            known_.join(warp.known);
            warp.known.clear();
        }
        if (warp.lanes == nullptr) continue;
        for (Lane& lane : *warp.lanes) {
            if (lane.known.empty()) continue;
            known_.join(lane.known);
            lane.known.clear();
        }
    }
    known_.compact(threads_);
    seen_ = time_;
    epoch_ = ++time_;
}

// Adds what the lanes know in addition to what the whole block knows.
void BlockOrder::gather(const WarpLanes& lanes, Knowledge& into) {
    const Warp& warp = warps_[lanes.warp];
    into.join(warp.known);
    if (warp.seen > seen_) into.seen.see_warp(number_, lanes.warp, warp.seen);
    for (const unsigned lane : LanesOf{lanes.lanes}) {
        if (warp.lanes != nullptr) into.join((*warp.lanes)[lane].known);
        if (!lanes.all()) into.seen.see_thread({number_, lanes.warp, lane}, epoch(lanes.warp, lane));
    }
    if (lanes.all()) into.seen.see_warp(number_, lanes.warp, time_);
}

void BlockOrder::start_epoch(const WarpLanes& lanes) {
    ++time_;
    if (lanes.all()) {
        warps_[lanes.warp].epoch = time_;
        return;
    }
    for (const unsigned lane : LanesOf{lanes.lanes}) lane_of(lanes.warp, lane).epoch = time_;
}

void BlockOrder::arrive_at_barrier(const WarpLanes& lanes, std::uint32_t id) {
    gather(lanes, arrived_[id]);
    start_epoch(lanes);
}

void BlockOrder::pass_barrier(const std::vector<WarpLanes>& waiting, std::uint32_t id) {
    Knowledge all = std::exchange(arrived_[id], {});
    for (const WarpLanes& each : waiting) {
        gather(each, all);
        start_epoch(each);
    }
    all.compact(threads_);
    for (const WarpLanes& each : waiting) acquire(each, all);
}

void BlockOrder::pass_warp_barrier(const WarpLanes& lanes) {
    Warp& warp = warps_[lanes.warp];
    if (lanes.all() && warps_.size() == 1) return pass_barrier();
    if (!lanes.all()) {
        Knowledge all;
        gather(lanes, all);
        start_epoch(lanes);
        return acquire(lanes, all);
    }
    if (warp.lanes != nullptr) {
        for (Lane& lane : *warp.lanes) {
            if (lane.known.empty()) continue;
            warp.known.join(lane.known);
            lane.known.clear();
        }
        warp.known.compact(threads_);
    }
    warp.seen = time_;
    warp.epoch = ++time_;
}

void BlockOrder::acquire(const WarpLanes& lanes, const Knowledge& given) {
    if (given.empty()) return;
    has_fences_ = has_fences_ || !given.fenced[1].empty() || !given.awaited[1].empty();
    if (lanes.all()) return warps_[lanes.warp].known.join(given);
    for (const unsigned lane : LanesOf{lanes.lanes}) lane_of(lanes.warp, lane).known.join(given);
}

// --- fences and strong accesses ----------------------------------------------------------------------------

// Joins a clock of the block, the warp and the lane.
template <class Of>
Clock BlockOrder::joined(std::uint32_t warp, std::uint32_t lane, const Of& of) const {
    Clock made = of(known_);
    made.join(of(warps_[warp].known));
    if (warps_[warp].lanes != nullptr) made.join(of((*warps_[warp].lanes)[lane].known));
    return made;
}

Clock BlockOrder::seen_by(std::uint32_t warp, std::uint32_t lane) const {
    Clock made = joined(warp, lane, [](const Knowledge& known) -> const Clock& { return known.seen; });
    if (seen_ != 0) made.see_block(number_, seen_);
    if (warps_[warp].seen > seen_) made.see_warp(number_, warp, warps_[warp].seen);
    made.see_thread({number_, warp, lane}, epoch(warp, lane));
    return made;
}

Knowledge BlockOrder::own(std::uint32_t warp, std::uint32_t lane) const {
    Knowledge made;
    made.seen.see_thread({number_, warp, lane}, epoch(warp, lane));
    return made;
}

Knowledge BlockOrder::release(const WarpLanes& lanes) {
    Knowledge made = known_;
    if (seen_ != 0) made.seen.see_block(number_, seen_);
    gather(lanes, made);
    start_epoch(lanes);
    return made;
}

Knowledge BlockOrder::release_fenced(const WarpLanes& lanes) const {
    Knowledge made;
    for (const unsigned lane : LanesOf{lanes.lanes})
        made.seen.join(
            joined(lanes.warp, lane, [](const Knowledge& known) -> const Clock& { return known.fenced[0]; }));
    return made;
}

void BlockOrder::fence(const WarpLanes& lanes, bool acquires, bool releases, Scope scope) {
    const auto widest = static_cast<std::size_t>(scope);
    for (const unsigned l : LanesOf{lanes.lanes}) {
        for (std::size_t s = widest; acquires && has_fences_ && s < 2; ++s) {
            const Clock found = joined(
                lanes.warp, l, [s](const Knowledge& known) -> const Clock& { return known.awaited[s]; });
            if (!found.empty()) lane_of(lanes.warp, l).known.seen.join(found);
        }
        if (!releases) continue;
        const Clock now = seen_by(lanes.warp, l);
        Lane& lane = lane_of(lanes.warp, l);
        for (std::size_t s = widest; s < 2; ++s) lane.known.fenced[s] = now;
    }
    if (!releases) return;
    has_fences_ = true;
    start_epoch(lanes);
}

std::size_t BlockOrder::access(Publications& all, std::uint64_t address, std::uint32_t warp,
                               std::uint32_t lane, const StrongAccess& access) {
    const auto found = all.empty() ? all.end() : all.find(address);
    if (access.reads && found != all.end()) {
        const Published& given = found->second;
        Lane& reader = lane_of(warp, lane);
        const std::uint64_t taken = 2 * given.version + (access.acquires ? 1 : 0);
        Knowledge& known = reader.known;
        const auto take = [&](std::size_t s) {
            (access.acquires ? known.seen : known.awaited[s]).join(given.clocks[s]);
        };
        if (std::exchange(reader.taken, taken) != taken) {
            if (access.scope == Scope::device) take(0);
            if (given.block == number_) take(1);
        }
        has_fences_ = true;
    }
    if (!access.writes) return 0;
    std::array<Clock, 2> made;
    if (access.releases || has_fences_) {
        for (std::size_t s = static_cast<std::size_t>(access.scope); s < 2; ++s) {
            made[s] = access.releases ? seen_by(warp, lane)
                                      : joined(warp, lane, [s](const Knowledge& known) -> const Clock& {
                                            return known.fenced[s];
                                        });
        }
    }
    if (access.releases) start_epoch({warp, 1u << lane, ~0u});
    const bool goes_on =
        access.reads && found != all.end();  // an atomic operation continues a release sequence
    if (goes_on) {
        if (found->second.block == number_) made[1].join(found->second.clocks[1]);
        made[0].join(found->second.clocks[0]);
    }
    if (made[0].empty() && made[1].empty()) {
        if (found != all.end()) all.erase(found);
        return 0;
    }
    for (Clock& each : made) each.compact(threads_);
    const std::size_t entries = made[0].size() + made[1].size();
    all[address] = {std::move(made), number_, ++last_version_};
    return entries;
}

}  // namespace emulated::checks
