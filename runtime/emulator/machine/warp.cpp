// Selects the group of a warp that runs next: the one with the deepest call, then the one earliest in the code. Groups at
// the same position are merged. A group that only loops yields to the others, so that the lane that holds a lock can
// release it.
#include "machine/warp.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "machine/groups.hpp"
#include "machine/observer.hpp"

namespace emulated::machine {
namespace {

bool before(const Group& a, const Group& b) { return a.depth != b.depth ? a.depth > b.depth : a.pc < b.pc; }

// The ready group to run; null if there is none.
Group* choose(Warp& warp, bool oldest) {
    Group* best = nullptr;
    for (Group& group : warp.groups) {
        if (group.state != Group::State::ready) continue;
        if (!best || (oldest ? group.stamp < best->stamp : before(group, *best))) best = &group;
    }
    return best;
}

// Lanes that wait for others in a shuffle continue if those others have exited in the meantime.
bool try_meeting_again(Warp& warp) {
    if (warp.met_after_exits == warp.exited) return false;
    bool any = false;
    for (Group& group : warp.groups) {
        if (group.state != Group::State::meeting) continue;
        group.state = Group::State::ready;
        any = true;
    }
    warp.met_after_exits = warp.exited;
    return any;
}

void take(Lanes& lanes, Warp& warp, Group chosen, bool rotated) {
    std::uint32_t yield = ~0u;
    std::erase_if(warp.groups, [&](const Group& group) {
        if (group.state != Group::State::ready || group.pc != chosen.pc || group.depth != chosen.depth)
            return false;
        chosen.mask |= group.mask;
        return true;
    });
    for (const Group& group : warp.groups) {
        if (group.state == Group::State::ready && group.depth == chosen.depth)
            yield = std::min(yield, group.pc);
    }
    begin_group(lanes, warp, chosen, warp.groups.empty(), rotated ? ~0u : yield);
    lanes.rotated = rotated;
}

// The common case: there is only one group.
void take_only(Lanes& lanes, Warp& warp) {
    begin_group(lanes, warp, warp.groups.front(), true, ~0u);
    warp.groups.clear();
}

}  // namespace

void begin_group(Lanes& lanes, const Warp& warp, const Group& chosen, bool alone, std::uint32_t yield_pc) {
    lanes.mask = lanes.unguarded = chosen.mask;  // lockstep may end within a guard, with whole warps
    lanes.dead = ~warp.exists | warp.exited;
    lanes.write_mask = lanes.mask | lanes.dead;
    lanes.depth = chosen.depth;
    lanes.alone = alone;
    lanes.rotated = false;
    lanes.yield_pc = yield_pc;
    lanes.budget = std::min(alone ? lanes.alone_budget : shared_budget, lanes.block->most_rounds);
    lanes.stop = Stop::none;
    lanes.pc = chosen.pc;
}

const Instruction* watched(Lanes& s, const Instruction* i) {
    if (s.block->counting) return fault(s, i, LaneFault::What::cancelled);
    const LaneFault::What what = s.block->watchdog.look();
    return what == LaneFault::What::none ? i : fault(s, i, what);
}

const Instruction* spent(Lanes& s, const Instruction* i, std::uint32_t next) {
    if (s.in_step != 0) return reselect(s, next);
    if (watched(s, i) == nullptr) return nullptr;
    if (!s.alone || s.block->warps_take_turns) return reselect(s, next);
    s.budget = s.alone_budget;
    return s.code + next;
}

const Instruction* misuse(Lanes& s, const Instruction* i, std::uint32_t lanes, std::string message,
                          LaneFault::What what) {
    s.block->message = std::move(message);
    return fault(s, i, what, lanes);
}

bool run_warp(Lanes& lanes, Warp& warp) {
    lanes.warp = &warp;
    lanes.registers = warp.registers;
    bool rotate = false;
    std::uint64_t stamp = 0;
    // Counts used-up budgets and failed waits. After one or two for each group, other warps run.
    std::size_t rounds = 0;
    for (;;) {
        if (warp.groups.size() == 1 && warp.groups.front().state == Group::State::ready) {
            take_only(lanes, warp);
        } else {
            const Group* chosen = choose(warp, rotate);
            if (!chosen) {
                if (try_meeting_again(warp)) continue;
                return true;
            }
            take(lanes, warp, *chosen, rotate);
        }
        rotate = false;
        const Instruction* at = lanes.code + lanes.pc;
        if (lanes.until_look <= 0) [[unlikely]] {
            lanes.until_look = lanes.alone_budget;
            at = watched(lanes, at);
        }
        const std::uint32_t budget = lanes.budget;
        if (lanes.observers == nullptr) {
            while (at) at = reinterpret_cast<Handler>(at->handler)(lanes, at);
        } else {
            if (at != nullptr) lanes.observers->run(lanes, lanes.pc);
        }

        lanes.until_look -= std::int64_t{1} + budget - lanes.budget;
        if (lanes.stop == Stop::fault) return false;
        if (lanes.stop == Stop::exited) continue;
        // Assigned field by field, because copying a whole Group right after writing its fields stalls the processor.
        Group& parked = warp.groups.emplace_back();
        parked.pc = lanes.pc;
        parked.mask = lanes.mask;
        parked.depth = lanes.depth;
        parked.stamp = ++stamp;
        if (lanes.stop == Stop::barrier) {
            parked.state = Group::State::barrier;
            parked.barrier = lanes.barrier;
            parked.barrier_count = lanes.barrier_count;
            if (warp.groups.size() == 1) return true;
        } else if (lanes.stop == Stop::meeting) {
            parked.state = Group::State::meeting;
        } else if (lanes.stop == Stop::cluster_barrier) {
            parked.state = Group::State::cluster_barrier;
        } else if (lanes.stop == Stop::registers) {
            parked.state = Group::State::registers;
            parked.barrier_count = lanes.barrier_count;
        } else if (lanes.stop == Stop::waiting) {
            // Another group or another warp must run before the wait can end.
            rotate = true;
            if (lanes.block->warps_take_turns && ++rounds > warp.groups.size()) return true;
        } else {
            rotate = lanes.budget == 0 && !lanes.rotated;
            if (lanes.budget == 0 && lanes.block->warps_take_turns && ++rounds > 2 * warp.groups.size())
                return true;
        }
    }
}

bool meet(Lanes& lanes, const Instruction* at, std::uint32_t required) {
    required &= ~lanes.dead;
    if ((lanes.mask & required) == required) return true;
    const auto pc = static_cast<std::uint32_t>(at - lanes.code);
    std::erase_if(lanes.warp->groups, [&](const Group& group) {
        if (group.pc != pc || group.depth != lanes.depth || group.state == Group::State::barrier)
            return false;
        lanes.mask |= group.mask;
        return true;
    });
    lanes.write_mask = lanes.mask | lanes.dead;
    lanes.alone = lanes.warp->groups.empty();
    if ((lanes.mask & required) == required) return true;
    lanes.pc = pc;
    lanes.stop = Stop::meeting;
    return false;
}

}  // namespace emulated::machine
