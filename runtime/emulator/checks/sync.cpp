// Finds barriers that some threads of a warp do not reach, and warp operations with wrong masks.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "checks/kernel_checks.hpp"
#include "machine/groups.hpp"
#include "machine/warp.hpp"

namespace emulated::checks {
namespace {

using machine::Block;
using machine::Execution;
using machine::Group;
using machine::Instruction;
using machine::LanesOf;
using machine::Warp;
using program::Flag;
using program::Operation;

/// A warp operation that takes a mask: its name, and the operand that is the mask.
struct MaskedOperation {
    Operation operation;
    std::uint8_t mask;
    const char* name;
};
constexpr MaskedOperation masked_operations[] = {
    {Operation::shfl, 5, "a shuffle"},   {Operation::vote, 2, "a vote"},
    {Operation::match, 3, "a match"},    {Operation::redux, 2, "a reduction"},
    {Operation::elect, 2, "elect.sync"}, {Operation::bar_warp, 0, "__syncwarp()"}};

unsigned first_lane(std::uint32_t lanes) { return static_cast<unsigned>(std::countr_zero(lanes)); }

class Sync final : public machine::Observer {
  public:
    Sync(const Request& request, const LaunchName& launch) : request_(request), launch_(launch) {}

    bool sees_before(const program::Code& code, std::uint32_t pc) const override {
        const Operation operation = code.keys[pc].operation;
        return operation == Operation::bar ||
               std::ranges::find(masked_operations, operation, &MaskedOperation::operation) !=
                   std::end(masked_operations);
    }
    bool sees_after(const program::Code&, std::uint32_t) const override { return false; }

    void begin_block(const Block& block, const machine::Lanes&) override { barriers_[&block] = {}; }

    void before(const Execution& execution) override {
        const Operation operation = execution.key().operation;
        if (operation == Operation::bar) return arrive(execution);
        for (const MaskedOperation& row : masked_operations) {
            if (row.operation == operation) return check_masks(execution, row);
        }
        if (!undefined_.empty()) follow_undefined(execution);
    }

    void begin_warps(const Block&, std::span<const Warp> warps) override {
        for (const Warp& warp : warps) undefined_.erase(&warp);
    }

    void pass_barrier(const Block& block, std::span<const Warp> warps, std::uint32_t id) override {
        barriers_[&block][id] = {};
        for (const Warp& warp : warps) {
            const Group* first = nullptr;
            std::uint32_t waiting = 0;
            for (const Group& group : warp.groups) {
                if (group.state != Group::State::barrier || group.barrier != id || !is_aligned(block, group))
                    continue;
                waiting |= group.mask;
                if (first == nullptr) first = &group;
            }
            if (first == nullptr) continue;
            const std::uint32_t others = warp.exists & ~warp.exited & ~waiting;
            const auto other = std::ranges::find_if(warp.groups, [&](const Group& group) {
                return (group.mask & waiting) != 0 ? group.pc != first->pc : (group.mask & others) != 0;
            });
            if (other != warp.groups.end()) report_split(block, warp, *first, *other);
        }
    }

    void deadlock(const Block& block, std::span<const Warp> warps) override {
        for (const Warp& warp : warps) {
            const auto at_barrier = std::ranges::find(warp.groups, Group::State::barrier, &Group::state);
            if (at_barrier == warp.groups.end()) continue;
            for (const Group& group : warp.groups) {
                if (place_of(group) == place_of(*at_barrier) || !is_aligned(block, *at_barrier)) continue;
                report_split(block, warp, *at_barrier, group);
                break;
            }
        }
    }

  private:
    /// The threads that have arrived at a barrier since it was passed.
    struct Arrivals {
        std::uint32_t wanted = 0, threads = 0, pc = 0, first = 0;
    };

    // The instruction at which a group waits.
    static std::uint32_t place_of(const Group& group) {
        return group.state == Group::State::barrier ? group.pc - 1 : group.pc;
    }
    static bool is_aligned(const Block& block, const Group& group) {
        return (block.grid->code->instructions[place_of(group)].bits & Instruction::is_aligned) != 0;
    }

    Deed deed(const Block& block, std::uint32_t pc, std::uint32_t thread, std::string what) const {
        return deed_of(*block.grid->code, {pc, thread, block.index}, request_.block, std::move(what));
    }

    void tell(Deed first, std::optional<Deed> other, std::uint32_t pc, std::uint32_t other_pc,
              std::uint32_t lanes, std::string advice) const {
        Finding finding;
        finding.check = Check::sync;
        finding.pc = pc;
        finding.other_pc = other_pc;
        finding.first = std::move(first);
        finding.other = std::move(other);
        finding.advice = std::move(advice);
        report(launch_, std::move(finding), static_cast<std::uint64_t>(std::popcount(lanes)));
    }

    void report_split(const Block& block, const Warp& warp, const Group& group, const Group& other) {
        const std::uint32_t pc = place_of(group), other_pc = place_of(other);
        const auto line_at = [&](std::uint32_t at) { return block.grid->code->lines[at].source; };
        if (other.state == Group::State::barrier && line_at(other_pc) < line_at(pc))
            return report_split(block, warp, other, group);  // from top to bottom
        // The other group may pass a barrier of its own right after this one, which is the same mistake.
        const auto is_known = [&](std::uint32_t place) {
            return std::ranges::any_of(
                splits_, [&](const auto& each) { return each.first == place || each.second == place; });
        };
        if (!std::ranges::count(splits_, std::pair(pc, other_pc))) {
            if (is_known(pc) || is_known(other_pc) || is_known(other_pc - 1)) return;
            splits_.emplace_back(pc, other_pc);
        }
        const bool at_barrier = other.state == Group::State::barrier;
        const auto thread_of = [&](const Group& of) { return 32 * warp.index + first_lane(of.mask); };
        tell(deed(block, pc, thread_of(group),
                  "waited at a barrier that other threads of its warp do not reach"),
             deed(block, other_pc, thread_of(other),
                  at_barrier                             ? "waited at another barrier"
                  : other.state == Group::State::meeting ? "waited for lanes of its warp"
                                                         : "was elsewhere"),
             pc, other_pc, group.mask,
             "all threads of a warp must execute the same __syncthreads(); move it out of the branch");
    }

    // A barrier has one thread count from the first arrival until it is passed. Without a count it is the whole block's.
    void arrive(const Execution& execution) {
        const Instruction& i = execution.instruction();
        const unsigned lane = first_lane(execution.mask);
        const std::byte* registers = execution.lanes.registers;
        std::uint32_t id = 0, count = 0;
        std::memcpy(&id, registers + i.operand[0] + lane * sizeof id, sizeof id);
        if (i.bits & Instruction::has_count)
            std::memcpy(&count, registers + i.operand[1] + lane * sizeof count, sizeof count);
        if (id >= 16) return;
        const Block& block = *execution.lanes.block;
        if (count == 0) count = (block.threads + 31) / 32 * 32;
        Arrivals& at = barriers_[&block][id];
        if (at.threads == 0 || at.threads >= at.wanted) at = {count, 0, execution.pc, execution.thread(lane)};
        at.threads += static_cast<std::uint32_t>(std::popcount(execution.mask));
        if (at.wanted == count) return;
        tell(deed(block, execution.pc, execution.thread(lane),
                  fmt::format("arrived at barrier {} for {} threads", id, count)),
             deed(block, at.pc, at.first, fmt::format("arrived at it for {} threads", at.wanted)),
             execution.pc, at.pc, execution.mask,
             "give every bar.sync and bar.arrive of a phase the same count");
    }

    // Looks at the lanes that execute the instruction together, once all of them have come (machine::meet).
    void check_masks(const Execution& execution, const MaskedOperation& row) {
        const machine::Lanes& s = execution.lanes;
        const Warp& warp = *s.warp;
        const auto* members =
            reinterpret_cast<const std::uint32_t*>(s.registers + execution.instruction().operand[row.mask]);
        std::uint32_t required = 0, here = execution.mask;
        for (const unsigned l : LanesOf{execution.mask}) {
            required |= members[l] & ~s.dead;
            if ((members[l] >> l & 1) == 0) {
                return tell_mask(
                    execution, row, l, 1u << l,
                    fmt::format("executed {} with the mask {:#010x}, which lacks its own lane {}", row.name,
                                members[l], l));
            }
        }
        if ((here & required) != required) {
            for (const Group& group : warp.groups) {
                if (group.pc == execution.pc && group.depth == s.depth &&
                    group.state != Group::State::barrier)
                    here |= group.mask;
            }
            if ((here & required) != required) return;
        }
        for (const unsigned l : LanesOf{here}) {
            for (const unsigned k : LanesOf{members[l] & here}) {
                if (members[k] == members[l]) continue;
                return tell_mask(
                    execution, row, l, here,
                    fmt::format(
                        "executed {} with the mask {:#010x}, and lane {}, which it names, with {:#010x}",
                        row.name, members[l], k, members[k]));
            }
        }
        if (row.operation == Operation::shfl) check_sources(execution, members, here);
    }

    void tell_mask(const Execution& execution, const MaskedOperation& row, unsigned lane, std::uint32_t lanes,
                   std::string what) const {
        tell(deed(*execution.lanes.block, execution.pc, execution.thread(lane), std::move(what)), {},
             execution.pc, ~0u, lanes,
             row.operation == Operation::bar_warp
                 ? "give all lanes that meet the same mask, of exactly those lanes"
                 : "give all lanes that take part the same mask, of exactly those lanes; __ballot_sync "
                   "before the branch makes one");
    }

    // A lane of the segment that a shuffle reads must take part. Outside of the segment it gets its own value.
    void check_sources(const Execution& execution, const std::uint32_t* members, std::uint32_t here) {
        const machine::Lanes& s = execution.lanes;
        const auto operand = [&](unsigned k, unsigned l) {
            std::uint32_t value = 0;
            std::memcpy(&value, s.registers + execution.instruction().operand[k] + l * sizeof value,
                        sizeof value);
            return value;
        };
        const program::FlagSet& mode = execution.key().flags;
        Undefined* known = undefined_.empty() ? nullptr : of_warp(*s.warp);
        const std::uint32_t before =
            known == nullptr ? 0 : known->lanes_of(execution.instruction().operand[2]);
        std::uint32_t wrong = 0, source = 0, passed_on = 0;
        for (const unsigned l : LanesOf{here}) {
            const std::uint32_t distance = operand(3, l) & 31, c = operand(4, l), segment = c >> 8 & 31;
            const std::uint32_t low = l & segment, bound = low | (c & 31 & ~segment);
            const auto at = static_cast<std::int32_t>(mode.has(Flag::up)     ? l - distance
                                                      : mode.has(Flag::down) ? l + distance
                                                      : mode.has(Flag::bfly) ? l ^ distance
                                                                             : low | (distance & ~segment));
            const auto limit = static_cast<std::int32_t>(bound);
            const bool own = mode.has(Flag::up) ? at < limit : at > limit;
            const unsigned from = own ? l : static_cast<unsigned>(at);
            if (own || (members[l] & here) >> at & 1) {
                passed_on |= (before >> from & 1) << l;
                continue;
            }
            if (wrong == 0) source = static_cast<std::uint32_t>(at);
            wrong |= 1u << l;
        }
        if (known != nullptr) known->set(execution.instruction().operand[0], here, passed_on);
        if (wrong == 0) return;
        const unsigned lane = first_lane(wrong);
        const Warp& warp = *s.warp;
        const char* why = !(warp.exists >> source & 1)     ? "which the block does not have"
                          : warp.exited >> source & 1      ? "which has exited"
                          : !(members[lane] >> source & 1) ? "which is not in its mask"
                                                           : "which does not take part";
        Undefined& made = undefined_[&warp];
        follow(*s.warp);
        made.shuffle = {execution.pc, execution.thread(lane), s.block->index};
        made.what =
            fmt::format("read lane {}, {}, by a shuffle with the mask {:#010x}", source, why, members[lane]);
        made.set(execution.instruction().operand[0], here, wrong | passed_on);
    }

    // Registers that depend on a lane that did not take part. A program may compute with them and discard the result, so
    // only a use that others see is reported: a store, an address, a branch.
    struct Undefined {
        ThreadPlace shuffle;
        std::string what;
        std::unordered_map<std::uint32_t, std::uint32_t> lanes;  // by place in the register file

        std::uint32_t lanes_of(std::uint32_t place) const {
            const auto found = lanes.find(place);
            return found == lanes.end() ? 0 : found->second;
        }
        void set(std::uint32_t place, std::uint32_t active, std::uint32_t undefined) {
            const std::uint32_t now = (lanes_of(place) & ~active) | (undefined & active);
            if (now != 0)
                lanes[place] = now;
            else
                lanes.erase(place);
        }
    };
    Undefined* of_warp(const Warp& warp) {
        const auto found = undefined_.find(&warp);
        return found == undefined_.end() ? nullptr : &found->second;
    }

    void follow_undefined(const Execution& execution) {
        const Warp& warp = *execution.lanes.warp;
        Undefined* known = of_warp(warp);
        if (known == nullptr) return;
        const auto& operands = execution.operands();
        const auto& places = execution.instruction().operand;
        const std::uint32_t* list = execution.code.lists.data() + places[0];
        const Operation operation = execution.key().operation;
        std::uint32_t used = 0;
        for (unsigned k = operands.results; k < unsigned{operands.results} + operands.sources; ++k)
            used |= known->lanes_of(places[operands.first + k]);
        for (unsigned k = operands.listed_results; k < operands.listed; ++k) used |= known->lanes_of(list[k]);
        if (operation == Operation::selp) {
            const auto* chosen =
                reinterpret_cast<const std::uint32_t*>(execution.lanes.registers + places[3]);
            used = (known->lanes_of(places[1]) & *chosen) | (known->lanes_of(places[2]) & ~*chosen) |
                   known->lanes_of(places[3]);
        }
        const bool is_and = operation == Operation::and_;
        if ((is_and || operation == Operation::or_) && execution.key().type == program::Type::pred) {
            // A false operand of `and`, or a true one of `or`, decides.
            const auto undecided = [&](unsigned k) {
                const auto value =
                    *reinterpret_cast<const std::uint32_t*>(execution.lanes.registers + places[k]);
                return known->lanes_of(places[k]) | (is_and ? value : ~value);
            };
            used &= undecided(1) & undecided(2);
        }
        used &= execution.mask;
        const bool decides = program::does(operation, program::Does::jumps) ||
                             operation == Operation::guard || operation == Operation::compare_guard;
        if (used != 0 && (decides || !execution.accesses.empty())) {
            tell(deed_of(execution.code, known->shuffle, request_.block, known->what),
                 deed(*execution.lanes.block, execution.pc, execution.thread(first_lane(used)),
                      "used the value"),
                 known->shuffle.pc, execution.pc, used,
                 "the value is undefined; let that lane take part, or choose a width that ends before it");
            undefined_.erase(&warp);
            return;
        }
        for (unsigned k = 0; k < operands.results; ++k)
            known->set(places[operands.first + k], execution.mask, used);
        for (unsigned k = 0; k < operands.listed_results; ++k) known->set(list[k], execution.mask, used);
        if (known->lanes.empty()) undefined_.erase(&warp);
    }

    const Request& request_;
    const LaunchName& launch_;
    std::unordered_map<const Block*, std::array<Arrivals, 16>> barriers_;
    std::unordered_map<const Warp*, Undefined> undefined_;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> splits_;  // reported: the places of two groups
};

}  // namespace

MadeCheck make_sync_check(const Request& request, const LaunchName& launch) {
    return std::make_unique<Sync>(request, launch);
}

}  // namespace emulated::checks
