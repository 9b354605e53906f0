// Handlers of branches, exits, barriers and clocks.
#include "machine/control.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <thread>

#include "machine/cluster.hpp"
#include "machine/groups.hpp"
#include "machine/lockstep.hpp"
#include "machine/operations/async_view.hpp"
#include "machine/registry.hpp"
#include "machine/warp.hpp"

namespace emulated::machine {
namespace {

// Continues at `next`, unless another group must run.
const Instruction* proceed(Lanes& s, const Instruction* i, u32 next, bool backward) {
    if (backward) {
        if (--s.budget == 0) return spent(s, i, next);
        return s.alone || next < s.yield_pc ? s.code + next : reselect(s, next);
    }
    return s.alone || next < s.yield_pc ? machine::next(s, s.code + next) : reselect(s, next);
}

const Instruction* bra(Lanes& s, const Instruction* i) {
    return proceed(s, i, static_cast<u32>(i->immediate), i->bits & Instruction::backward);
}

// Splits the group at a branch. The lanes that are earlier in the code run; the others wait as a group.
const Instruction* diverge(Lanes& s, const Instruction* i, u32 taken) {
    const auto target = static_cast<u32>(i->immediate);
    const u32 next = index_of(s, i) + 1;
    const bool jump_first = target < next;
    const u32 others = jump_first ? s.mask & ~taken : taken;
    const u32 others_pc = jump_first ? next : target;
    if (s.alone) s.budget = shared_budget;
    part(s, others, others_pc);
    s.mask &= ~others;
    s.write_mask = s.mask | s.dead;
    if (!s.rotated && others_pc < s.yield_pc) s.yield_pc = others_pc;
    return proceed(s, i, jump_first ? target : next, jump_first);
}

/// The values of a predicate over the lanes of all warps in lockstep.
struct Truth {
    bool anywhere = false, everywhere = true;
};
Truth truth_of(Lanes& s, const Instruction* i) {
    const u32 flip = i->bits & Instruction::negated ? ~0u : 0u;
    u32 any = 0, all = ~0u;
    std::byte* registers = s.registers;
    for (u32 k = 0; k <= s.in_step; ++k, registers += s.file_bytes) {
        const u32 p = predicate_in(registers, i->operand[0]) ^ flip;
        any |= p;
        all &= p;
    }
    return {any != 0, all == ~0u};
}

const Instruction* branch_in_lockstep(Lanes& s, const Instruction* i) {
    const Truth truth = truth_of(s, i);
    if (truth.everywhere) return bra(s, i);
    return truth.anywhere ? part_ways(s, i) : next(s, i + 1);
}

const Instruction* guard_in_lockstep(Lanes& s, const Instruction* i) {
    const Truth truth = truth_of(s, i);
    if (!truth.anywhere) return next(s, i + i->immediate);
    if (!truth.everywhere) return part_ways(s, i);
    s.unguarded = s.mask;
    return next(s, i + 1);
}

const Instruction* unguard(Lanes& s, const Instruction* i) {
    if (s.mask != s.unguarded) {
        s.mask = s.unguarded;
        s.write_mask = s.mask | s.dead;
    }
    return next(s, i + 1);
}

// Performs the lanes' pending copies, because nothing can wait for them any more.
__attribute__((noinline)) void end_transfers(Lanes& s) {
    s.warp->copies.finish(s.mask);
    s.block->cluster->transfers.finish_thread(s.warp, s.mask);
}

const Instruction* exit(Lanes& s, const Instruction*) {
    s.block->watchdog.note_progress();
    if (s.warp->has_transfers) end_transfers(s);  // false in lockstep
    s.warp->exited |= s.mask;
    s.stop = Stop::exited;
    return nullptr;
}

const Instruction* trap(Lanes& s, const Instruction* i) { return fault(s, i, LaneFault::What::trap); }

// True if all warps in lockstep name the same barrier, without a thread count or a reduction.
bool agree_on_barrier(Lanes& s, const Instruction* i) {
    if (i->bits & (Instruction::has_count | Instruction::counts)) return false;
    const std::byte* registers = s.registers + i->operand[0];
    for (u32 k = 1; k <= s.in_step; ++k) {
        if (std::memcmp(registers, registers + std::size_t{k} * s.file_bytes, sizeof(u32)) != 0) return false;
    }
    return true;
}

const Instruction* barrier(Lanes& s, const Instruction* i) {
    if (s.in_step != 0 && !agree_on_barrier(s, i)) return part_ways(s, i);
    const unsigned first = static_cast<unsigned>(__builtin_ctz(s.mask));
    const u32* ids = lanes_at<u32>(s, i->operand[0]);
    s.barrier = ids[first];
    s.barrier_count = 0;
    if (i->bits & Instruction::has_count) {
        s.barrier_count = lanes_at<u32>(s, i->operand[1])[first];
    }
    if (s.barrier >= 16 || s.barrier_count % 32 != 0) return fault(s, i, LaneFault::What::bad_barrier);
    if (i->bits & Instruction::counts) {
        Votes& votes = s.block->votes[s.barrier];
        votes.threads += static_cast<u32>(__builtin_popcount(s.mask));
        votes.yes += static_cast<u32>(__builtin_popcount(s.mask & predicate_at(s, i->operand[2])));
    }
    s.pc = index_of(s, i) + 1;
    s.stop = Stop::barrier;
    return nullptr;
}

template <Flag Mode>
const Instruction* counted(Lanes& s, const Instruction* i) {
    const u32* ids = lanes_at<u32>(s, i->operand[1]);
    const Votes& votes = s.block->counted[ids[__builtin_ctz(s.mask)] & 15u];
    if constexpr (Mode == Flag::popc) {
        u32* d = lanes_at<u32>(s, i->operand[0]);
        for (const unsigned l : LanesOf{s.mask}) d[l] = votes.yes;
    } else {
        const bool holds = Mode == Flag::and_ ? votes.yes == votes.threads : votes.yes != 0;
        u32& d = predicate_at(s, i->operand[0]);
        d = holds ? d | s.mask : d & ~s.mask;
    }
    return i + 1;
}

const Instruction* barrier_arrive(Lanes& s, const Instruction* i) {
    const Instruction* parked = barrier(s, i);
    if (s.stop == Stop::fault) return parked;
    s.stop = Stop::none;
    s.block->arrived[s.barrier] += static_cast<u32>(__builtin_popcount(s.mask));
    return i + 1;
}

const Instruction* fence(Lanes&, const Instruction* i) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return i + 1;
}

const Instruction* proxy_fence(Lanes& s, const Instruction* i) {
    fence_async_proxy(*s.block->cluster);
    return fence(s, i);
}

u64 nanoseconds(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<u64>(now.tv_sec) * 1'000'000'000u + static_cast<u64>(now.tv_nsec);
}

// "Suspends the thread for a sleep duration approximately close to the delay t, in [0, 2*t]", here at most a millisecond.
// All lanes sleep for the shortest delay that one of them asks for. If other groups or warps can run, they run instead,
// because the lanes often sleep until those have done something.
const Instruction* sleep(Lanes& s, const Instruction* i) {
    if (!s.alone || s.block->warps_take_turns) {
        s.pc = index_of(s, i) + 1;
        s.stop = Stop::waiting;
        return nullptr;
    }
    const u32* delays = lanes_at<u32>(s, i->operand[0]);
    u32 delay = 1'000'000;
    for (const unsigned l : LanesOf{s.mask}) delay = std::min(delay, delays[l]);
    constexpr u32 shortest_sleep = 100'000;  // nanoseconds; the system cannot sleep for less
    const u64 end = nanoseconds(CLOCK_MONOTONIC) + delay;
    if (delay >= shortest_sleep) std::this_thread::sleep_for(std::chrono::nanoseconds(delay));
    while (nanoseconds(CLOCK_MONOTONIC) < end) {
    }
    return i + 1;
}

template <class T, clockid_t Clock, unsigned Shift>
const Instruction* read_clock(Lanes& s, const Instruction* i) {
    auto* d = lanes_at<T>(s, i->operand[0]);
    const T now = static_cast<T>(nanoseconds(Clock) >> Shift);
    for (const unsigned l : LanesOf{s.mask}) d[l] = now;
    return i + 1;
}

}  // namespace

const Instruction* branch(Lanes& s, const Instruction* i) {
    if (s.in_step != 0) return branch_in_lockstep(s, i);
    u32 p = predicate_at(s, i->operand[0]);
    if (i->bits & Instruction::negated) p = ~p;
    const u32 taken = p & s.mask;
    if (taken == s.mask) return bra(s, i);
    if (taken == 0) return proceed(s, i, index_of(s, i) + 1, false);
    return diverge(s, i, taken);
}

const Instruction* guard(Lanes& s, const Instruction* i) {
    if (s.in_step != 0) return guard_in_lockstep(s, i);
    u32 p = predicate_at(s, i->operand[0]);
    if (i->bits & Instruction::negated) p = ~p;
    const u32 taken = s.mask & p;
    if (taken == 0) return next(s, i + i->immediate);
    s.unguarded = s.mask;
    // An unchanged mask is not written, because later instructions would wait for the write to choose their destination.
    if (taken != s.mask) {
        s.mask = taken;
        s.write_mask = taken | s.dead;
    }
    return next(s, i + 1);
}

void register_control(Registry& r) {
    const auto none = Type::none;
    r.add(Operation::bra, Lockstep{bra});
    r.add(Operation::branch, Lockstep{branch});
    r.add(Operation::guard, Lockstep{guard});
    r.add(Operation::unguard, Lockstep{unguard});
    r.add(Operation::exit, Lockstep{exit});
    r.add(Operation::trap, trap);
    r.add(Operation::bar, Lockstep{barrier}, {Flag::sync});
    r.add(Operation::bar, barrier_arrive, {Flag::arrive});
    r.add(Operation::bar_red, Type::u32, none, {Flag::popc}, counted<Flag::popc>);
    r.add(Operation::bar_red, Type::pred, none, {Flag::and_}, counted<Flag::and_>);
    r.add(Operation::bar_red, Type::pred, none, {Flag::or_}, counted<Flag::or_>);
    r.add(Operation::fence, fence);
    r.add(Operation::fence, proxy_fence, {Flag::async});
    r.add(Operation::fence, proxy_fence, {Flag::async_generic});
    r.add(Operation::nanosleep, Type::u32, none, {}, sleep);
    r.add(Operation::clock, Type::u32, none, {}, read_clock<u32, CLOCK_MONOTONIC, 0>);
    r.add(Operation::clock, Type::u32, none, {Flag::hi}, read_clock<u32, CLOCK_MONOTONIC, 32>);
    r.add(Operation::clock, Type::u64, none, {}, read_clock<u64, CLOCK_MONOTONIC, 0>);
    r.add(Operation::global_timer, Type::u32, none, {}, read_clock<u32, CLOCK_REALTIME, 0>);
    r.add(Operation::global_timer, Type::u32, none, {Flag::hi}, read_clock<u32, CLOCK_REALTIME, 32>);
    r.add(Operation::global_timer, Type::u64, none, {}, read_clock<u64, CLOCK_REALTIME, 0>);
}

}  // namespace emulated::machine
