#include "machine/lockstep.hpp"

#include <utility>

#include "machine/control.hpp"
#include "machine/groups.hpp"
#include "machine/registry.hpp"

namespace emulated::machine {
namespace {

const Instruction* end_of_one(Lanes&, const Instruction* i) { return i; }

// Runs the instruction for each warp separately, except the first `done` warps. `known` is the cache of its pattern, or
// null.
const Instruction* run_each(Lanes& s, const Instruction* i, std::uint32_t done, AllocationCache* known) {
    Instruction alone[2] = {s.alone_code[index_of(s, i)], {}};
    alone[1].handler = reinterpret_cast<void (*)()>(end_of_one);
    const auto handler = reinterpret_cast<Handler>(alone[0].handler);
    std::byte *const registers = s.registers, *const local = s.local;
    Warp* const first = s.warp;
    const std::uint32_t count = std::exchange(s.in_step, 0) + 1;
    bool differ = false;
    for (; done < count; ++done) {
        s.warp = first + done;
        s.registers = registers + std::size_t{done} * s.file_bytes;
        s.local = local + std::size_t{done} * 32 * s.local_bytes;
        const std::uint8_t pattern = known ? known->pattern : 0;
        if (!handler(s, alone)) break;
        if (known && done != 0) differ |= known->pattern != pattern;
    }
    // Later instructions with the same pattern assume it for all warps.
    if (differ) known->pattern = AllocationCache::no_pattern;
    s.warp = first;
    s.registers = registers;
    s.local = local;
    s.in_step = count - 1;
    return done == count ? next(s, i + 1) : part_ways(s, i, done);
}

const Instruction* one_by_one(Lanes& s, const Instruction* i) { return run_each(s, i, 0, nullptr); }

const Instruction* part_here(Lanes& s, const Instruction* i) { return part_ways(s, i); }

Handler handler_in_lockstep(const program::Key& key) {
    const Registry::Found found = registry().find(key);
    if (found.together) return found.together;
    using program::Does;
    return does(key.operation, Does::by_lane | Does::by_warp) ? one_by_one : part_here;
}

}  // namespace

const Instruction* part_ways(Lanes& s, const Instruction* i, std::uint32_t done) {
    s.pc = index_of(s, i);
    s.went_on = done;
    s.stop = Stop::parted;
    return nullptr;
}

const Instruction* access_one_by_one(Lanes& s, const Instruction* i, std::uint32_t done) {
    return run_each(s, i, done, &s.caches[i->operand[Instruction::pattern]]);
}

void link_lockstep(const program::Code& code) {
    code.lockstep = code.instructions;
    for (std::size_t i = 0; i < code.lockstep.size(); ++i)
        code.lockstep[i].handler = reinterpret_cast<void (*)()>(handler_in_lockstep(code.keys[i]));
}

bool can_run_in_lockstep(const Warp& warp) noexcept {
    if (warp.groups.size() != 1 || warp.has_transfers) return false;
    const Group& group = warp.groups.front();
    return group.state == Group::State::ready && group.mask == ~0u && group.depth == 0;
}

bool run_in_lockstep(Lanes& lanes, std::span<Warp> warps) {
    if (lanes.until_look <= 0) [[unlikely]] {
        // A warp that continues alone checks again and reports the fault.
        lanes.went_on = 0;
        if (lanes.block->watchdog.look() != LaneFault::What::none) return true;
        lanes.until_look = lanes.alone_budget;
    }
    Warp& first = warps.front();
    lanes.warp = &first;
    lanes.registers = first.registers;
    lanes.in_step = static_cast<std::uint32_t>(warps.size()) - 1;
    lanes.code = lanes.block->grid->code->lockstep.data();
    begin_group(lanes, first, first.groups.front(), true, ~0u);
    const std::uint32_t budget = lanes.budget;
    const Instruction* at = lanes.code + lanes.pc;
    while (at) at = reinterpret_cast<Handler>(at->handler)(lanes, at);

    lanes.until_look -= std::int64_t{1} + budget - lanes.budget;
    lanes.in_step = 0;
    lanes.code = lanes.alone_code;
    std::uint32_t did_it = lanes.stop == Stop::parted ? lanes.went_on : 0;
    for (Warp& warp : warps) {
        if (lanes.stop == Stop::exited) {
            warp.exited = warp.exists;
            warp.groups.clear();
            continue;
        }
        Group& group = warp.groups.front();
        group.pc = lanes.pc;
        if (did_it != 0) ++group.pc, --did_it;
        if (lanes.stop == Stop::barrier) {
            group.state = Group::State::barrier;
            group.barrier = lanes.barrier;
            group.barrier_count = 0;
        }
    }
    return lanes.stop == Stop::parted;
}

}  // namespace emulated::machine
