// Handlers of asynchronous copies and mbarriers (machine/transfers, machine/mbarrier).
#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "machine/cluster.hpp"
#include "machine/groups.hpp"
#include "machine/mbarrier.hpp"
#include "machine/operations/bulk.hpp"
#include "machine/reduction.hpp"
#include "machine/registry.hpp"
#include "machine/warp.hpp"

namespace emulated::machine {
namespace {

// --- cp.async ----------------------------------------------------------------------------------------------

// Returns the host address of a lane's source; null after a fault. Lanes mostly read from the same allocation, so the
// last one is tried first.
const std::byte* source_of(Lanes& s, const Instruction* i, unsigned lane, u64 address, u32 bytes,
                           u32 alignment) {
    AllocationCache& cache = s.caches[i->extra];
    const u64 offset = address - cache.base;
    if (address % alignment == 0 && offset <= cache.bytes && cache.bytes - offset >= bytes)
        return cache.host + offset;
    const std::byte* at = place(s, i, lane, {Space::global, address, bytes, alignment});
    if (at == nullptr) return nullptr;
    if (const memory::Allocation* found = s.memory->find(address)) remember(cache, *found);
    return at;
}

const Instruction* copy_async(Lanes& s, const Instruction* i) {
    const u64* to = lanes_at<u64>(s, i->operand[0]);
    const u64* from = lanes_at<u64>(s, i->operand[1]);
    const u32* valid = lanes_at<u32>(s, i->operand[2]);
    const auto bytes = static_cast<u32>(i->immediate);
    LaneCopies::Copy copy;
    for (const unsigned l : LanesOf{s.mask}) {
        if (valid[l] > bytes) {
            return misuse(
                s, i, 1u << l,
                fmt::format("cp.async of {} bytes cannot read {} from its source", bytes, valid[l]));
        }
        copy.valid[l] = valid[l];
        copy.from[l] = valid[l] == 0 ? nullptr : source_of(s, i, l, from[l], valid[l], bytes);
        if (valid[l] != 0 && copy.from[l] == nullptr) return nullptr;
        copy.to[l] = place(s, i, l, {Space::shared, to[l], bytes, bytes, true});
        if (copy.to[l] == nullptr) return nullptr;
        log_access(s, from[l], valid[l], races::Access::read);
    }
    for (const unsigned l : LanesOf{s.mask}) std::memset(copy.to[l], poison_byte, bytes);
    LaneCopies::Copy& added = s.warp->copies.add(s.mask, bytes);
    added.to = copy.to;
    added.from = copy.from;
    added.valid = copy.valid;
    s.warp->has_transfers = true;
    return i + 1;
}

const Instruction* commit_copies(Lanes& s, const Instruction* i) {
    s.warp->copies.commit(s.mask);
    return i + 1;
}

const Instruction* wait_for_copies(Lanes& s, const Instruction* i) {
    const auto recent = static_cast<u32>(i->immediate);
    for (const unsigned l : LanesOf{s.mask}) s.warp->copies.wait(l, recent);
    return i + 1;
}

const Instruction* wait_for_all_copies(Lanes& s, const Instruction* i) {
    s.warp->copies.commit(s.mask);
    s.warp->copies.finish(s.mask);
    return i + 1;
}

// --- mbarrier ----------------------------------------------------------------------------------------------

// Calls act(lane, host address of its object) for each lane; `act` returns an error or null. Returns null after a
// fault.
template <class Act>
const Instruction* each_object(Lanes& s, const Instruction* i, u32 slot, bool writes, const Act& act) {
    const u64* addresses = lanes_at<u64>(s, slot);
    for (const unsigned l : LanesOf{s.mask}) {
        std::byte* at = place(s, i, l, {shared_space(i), addresses[l], 8, 8, writes});
        if (at == nullptr) return nullptr;
        if (const Mbarrier::Error error = act(l, at)) return complain(s, i, l, addresses[l], error);
    }
    return i + 1;
}

// The same for initialised mbarriers, which `act` changes.
template <class Act>
const Instruction* each_barrier(Lanes& s, const Instruction* i, u32 slot, const Act& act) {
    return each_object(s, i, slot, true, [&](unsigned l, std::byte* at) -> Mbarrier::Error {
        auto state = Mbarrier::read_at(at);
        if (!state) return not_initialised;
        if (const Mbarrier::Error error = act(l, *state, at)) return error;
        state->write_at(at);
        return nullptr;
    });
}

const Instruction* initialise(Lanes& s, const Instruction* i) {
    const u32* counts = lanes_at<u32>(s, i->operand[1]);
    return each_object(s, i, i->operand[0], true, [&](unsigned l, std::byte* at) -> Mbarrier::Error {
        if (const Mbarrier::Error error = Mbarrier::check_count(counts[l])) return error;
        Mbarrier(counts[l]).write_at(at);
        auto& known = s.block->cluster->barriers;
        if (std::ranges::find(known, at) == known.end()) known.push_back(at);
        return nullptr;
    });
}

const Instruction* invalidate(Lanes& s, const Instruction* i) {
    return each_object(s, i, i->operand[0], true, [&](unsigned, std::byte* at) -> Mbarrier::Error {
        if (!Mbarrier::read_at(at)) return not_initialised;
        std::memset(at, poison_byte, 8);
        return nullptr;
    });
}

template <bool Completes>
const Instruction* count_bytes(Lanes& s, const Instruction* i) {
    const u32* bytes = lanes_at<u32>(s, i->operand[1]);
    return each_barrier(s, i, i->operand[0], [&](unsigned l, Mbarrier& state, std::byte*) {
        return Completes ? state.complete_bytes(bytes[l]) : state.expect_bytes(bytes[l]);
    });
}

enum class Arrival : std::uint8_t { plain, expects_bytes, does_not_complete };

// The result is the mbarrier's state before the arrival.
template <bool Drops, Arrival How>
const Instruction* arrive(Lanes& s, const Instruction* i) {
    const u32* count = lanes_at<u32>(s, i->operand[2]);
    u64 before[32];
    const Instruction* next =
        each_barrier(s, i, i->operand[1], [&](unsigned l, Mbarrier& state, std::byte*) -> Mbarrier::Error {
            before[l] = state.bits();
            if constexpr (How == Arrival::expects_bytes) {
                if (const auto error = state.expect_bytes(count[l])) return error;
            }
            const u32 arrivals = How == Arrival::expects_bytes ? 1 : count[l];
            if constexpr (Drops) {
                if (const auto error = state.drop(arrivals)) return error;
            }
            return How == Arrival::does_not_complete ? state.arrive_without_completing(arrivals)
                                                     : state.arrive(arrivals);
        });
    if (next != nullptr) write_lanes(s, i->operand[0], before);
    return next;
}

// If the phase is not over, the copies that it waits for are performed and it is tested again. If it is still not over, the
// group yields, because others may have to run first.
template <bool Parity>
const Instruction* test(Lanes& s, const Instruction* i) {
    const u64* addresses = lanes_at<u64>(s, i->operand[1]);
    u32 over = 0;
    const auto look = [&](unsigned l, std::byte* at) -> Mbarrier::Error {
        auto state = Mbarrier::read_at(at);
        if (!state) return not_initialised;
        bool odd = false;
        if constexpr (Parity) {
            odd = (lanes_at<u32>(s, i->operand[2])[l] & 1) != 0;
        } else {
            const auto token = Mbarrier::read(lanes_at<u64>(s, i->operand[2])[l]);
            if (!token) return "the state is not what an arrival returned";
            odd = token->odd;
        }
        if (state->odd == odd) {
            if (const Mbarrier::Error error = s.block->cluster->transfers.signal(at)) return error;
            state = Mbarrier::read_at(at);
        }
        if (state->odd != odd)
            over |= 1u << l;
        else
            s.block->open_phase = OpenPhase{addresses[l], state->pending, state->bytes};
        return nullptr;
    };
    if (each_object(s, i, i->operand[1], false, look) == nullptr) return nullptr;
    write_predicate(s, i->operand[0], over);
    if (over == s.mask) {
        s.block->open_phase.reset();
        return i + 1;
    }
    s.pc = index_of(s, i) + 1;
    s.stop = Stop::waiting;
    return nullptr;
}

const Instruction* pending_count(Lanes& s, const Instruction* i) {
    u32* d = lanes_at<u32>(s, i->operand[0]);
    const u64* states = lanes_at<u64>(s, i->operand[1]);
    for (const unsigned l : LanesOf{s.mask}) {
        const auto state = Mbarrier::read(states[l]);
        if (!state)
            return misuse(s, i, 1u << l, "mbarrier.pending_count: the state is not what an arrival returned");
        d[l] = state->pending;
    }
    return i + 1;
}

// Arrives when the lane's copies so far are complete. Without `Expected` the arrival is added to those that the phase
// expects.
template <bool Expected>
const Instruction* arrive_after_copies(Lanes& s, const Instruction* i) {
    return each_barrier(s, i, i->operand[0],
                        [&](unsigned l, Mbarrier& state, std::byte* at) -> Mbarrier::Error {
                            if constexpr (!Expected) {
                                if (const auto error = state.add_pending()) return error;
                            }
                            Transfer arrival;
                            arrival.warp = s.warp;
                            arrival.lane = l;
                            arrival.barrier = at;
                            arrival.before = &s.warp->copies;
                            arrival.issued = s.warp->copies.issued();
                            s.block->cluster->transfers.add(std::move(arrival));
                            return nullptr;
                        });
}

// --- bulk copies -------------------------------------------------------------------------------------------

constexpr u32 bulk_alignment = 16;

const Instruction* bulk_copy(Lanes& s, const Instruction* i) { return begin_bulk_copy(s, i, nullptr); }

const Instruction* store_async(Lanes& s, const Instruction* i) {
    return begin_remote_write(s, i, nullptr, static_cast<unsigned>(i->immediate));
}

const Instruction* commit_bulk_copies(Lanes& s, const Instruction* i) {
    for (const unsigned l : LanesOf{s.mask}) ++s.warp->bulk_groups[l];
    return i + 1;
}

template <bool OnlySources>
const Instruction* wait_for_bulk_copies(Lanes& s, const Instruction* i) {
    const auto recent = static_cast<u32>(i->immediate);
    Transfers& transfers = s.block->cluster->transfers;
    for (const unsigned l : LanesOf{s.mask}) {
        const u32 committed = s.warp->bulk_groups[l];
        if (recent > committed) continue;
        if (OnlySources)
            transfers.take_groups(s.warp, l, committed - recent);
        else
            transfers.finish_groups(s.warp, l, committed - recent);
    }
    return i + 1;
}

}  // namespace

// Operands: destination, source, bytes, and optionally the mbarrier and the mask of blocks.
const Instruction* begin_bulk_copy(Lanes& s, const Instruction* i, Reduction reduce) {
    const u64* to = lanes_at<u64>(s, i->operand[0]);
    const u64* from = lanes_at<u64>(s, i->operand[1]);
    const u32* sizes = lanes_at<u32>(s, i->operand[2]);
    const bool to_shared = (i->bits & Instruction::to_shared) != 0;
    const u64* barriers = to_shared ? lanes_at<u64>(s, i->operand[3]) : nullptr;
    const bool from_shared = (i->bits & Instruction::from_shared) != 0;
    const bool multicast = (i->bits & Instruction::multicast) != 0;
    // An H100 refuses this as an illegal instruction in a cluster of one block, although the PTX ISA allows it.
    if (reduce == nullptr && to_shared && from_shared && s.block->cluster->members.size() == 1)
        return misuse(
            s, i, s.mask,
            "cp.async.bulk from shared memory to the cluster's needs a launch in clusters of more than "
            "one block",
            LaneFault::What::no_cluster);
    s.warp->has_transfers = true;
    for (const unsigned l : LanesOf{s.mask}) {
        const u32 bytes = sizes[l];
        if (bytes % bulk_alignment != 0)
            return misuse(
                s, i, 1u << l,
                fmt::format("cp.async.bulk copies multiples of 16 bytes, and was asked for {}", bytes));
        if (bytes == 0) continue;
        Transfer transfer;
        transfer.warp = s.warp;
        transfer.lane = l;
        transfer.group = s.warp->bulk_groups[l];
        transfer.bytes = bytes;
        transfer.reduce = reduce;
        transfer.from =
            place(s, i, l, {from_shared ? Space::shared : Space::global, from[l], bytes, bulk_alignment});
        if (transfer.from == nullptr) return nullptr;
        const char* name = reduce == nullptr ? "cp.async.bulk" : "cp.reduce.async.bulk";
        if (from_shared && !sees_source(s, i, 1u << l, name, transfer.from, bytes)) return nullptr;
        if (!from_shared) log_access(s, from[l], bytes, races::Access::read);
        if (!to_shared)
            log_access(s, to[l], bytes,
                       reduce != nullptr ? races::Access::strong_write : races::Access::write);
        const Space where = !to_shared ? Space::global : shared_space(i);
        if (!multicast) {
            const Access access{where, to[l], bytes, bulk_alignment, true};
            if (!add_bulk_copy(s, i, l, std::move(transfer), access, to_shared ? barriers[l] : 0))
                return nullptr;
            continue;
        }
        // The copy goes to the same offset in each block and signals the mbarrier at the same offset there.
        for (u32 ranks = lanes_at<u32>(s, i->operand[4])[l] & 0xffffu; ranks != 0; ranks &= ranks - 1) {
            const auto rank = static_cast<unsigned>(__builtin_ctz(ranks));
            const Access access{Space::generic, address_in_block(to[l], rank), bytes, bulk_alignment, true};
            if (!add_bulk_copy(s, i, l, transfer, access, address_in_block(barriers[l], rank)))
                return nullptr;
        }
    }
    return i + 1;
}

// Operands: the list of the values' registers, the address and the mbarrier.
const Instruction* begin_remote_write(Lanes& s, const Instruction* i, Reduction reduce, unsigned bytes) {
    const u64* to = lanes_at<u64>(s, i->operand[1]);
    const u64* barriers = lanes_at<u64>(s, i->operand[2]);
    const u32 whole = bytes * i->count;
    s.warp->has_transfers = true;
    for (const unsigned l : LanesOf{s.mask}) {
        Transfer transfer;
        transfer.warp = s.warp;
        transfer.lane = l;
        transfer.bytes = whole;
        transfer.reduce = reduce;
        transfer.taken.resize(whole);
        for (u32 k = 0; k < i->count; ++k) {
            const std::byte* value = s.registers + s.lists[i->operand[0] + k] + std::size_t{l} * bytes;
            std::memcpy(transfer.taken.data() + std::size_t{k} * bytes, value, bytes);
        }
        const Access access{Space::generic, to[l], whole, whole, true};
        if (!add_bulk_copy(s, i, l, std::move(transfer), access, barriers[l])) return nullptr;
    }
    return i + 1;
}

void register_async(Registry& r) {
    const auto none = Type::none;
    r.add(Operation::copy_async, copy_async);
    r.add(Operation::copy_group, commit_copies, {Flag::commit_group});
    r.add(Operation::copy_group, wait_for_copies, {Flag::wait_group});
    r.add(Operation::copy_group, wait_for_all_copies, {Flag::wait_all});
    r.add(Operation::copy_arrive, Type::u64, none, {}, arrive_after_copies<false>);
    r.add(Operation::copy_arrive, Type::u64, none, {Flag::noinc}, arrive_after_copies<true>);
    r.add(Operation::bulk_copy, bulk_copy);
    r.add(Operation::store_async, store_async);
    r.add(Operation::bulk_group, commit_bulk_copies, {Flag::commit_group});
    r.add(Operation::bulk_group, wait_for_bulk_copies<false>, {Flag::wait_group});
    r.add(Operation::bulk_group, wait_for_bulk_copies<true>, {Flag::wait_group, Flag::read});
    const auto barrier = [&](const FlagSet& flags, Handler handler) {
        r.add(Operation::mbarrier, Type::u64, none, flags, handler);
    };
    barrier({Flag::init}, initialise);
    barrier({Flag::inval}, invalidate);
    barrier({Flag::expect_tx}, count_bytes<false>);
    barrier({Flag::complete_tx}, count_bytes<true>);
    barrier({Flag::arrive}, arrive<false, Arrival::plain>);
    barrier({Flag::arrive, Flag::expect_tx}, arrive<false, Arrival::expects_bytes>);
    barrier({Flag::arrive, Flag::noComplete}, arrive<false, Arrival::does_not_complete>);
    barrier({Flag::arrive_drop}, arrive<true, Arrival::plain>);
    barrier({Flag::arrive_drop, Flag::expect_tx}, arrive<true, Arrival::expects_bytes>);
    barrier({Flag::arrive_drop, Flag::noComplete}, arrive<true, Arrival::does_not_complete>);
    barrier({}, test<false>);
    barrier({Flag::parity}, test<true>);
    barrier({Flag::pending_count}, pending_count);
}

}  // namespace emulated::machine
