// Finds accesses to shared and global memory by threads of one grid that race: unordered, and at least one of them a write.
#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "checks/kernel_checks.hpp"
#include "checks/race_order.hpp"
#include "checks/race_shadow.hpp"
#include "machine/cluster.hpp"
#include "machine/groups.hpp"
#include "machine/mbarrier.hpp"
#include "machine/warp.hpp"

namespace emulated::checks {
namespace {

using machine::Execution;
using machine::LanesOf;
using machine::Mbarrier;
using program::Flag;
using program::Instruction;
using program::Operation;

/// Memory of the grid: an address of global memory, or an offset in the shared memory of a block.
struct Place {
    BlockOrder* owner = nullptr;  ///< null: global memory
    std::uint64_t at = 0;
};

/// A lane that executes an instruction.
struct Actor {
    const Execution& execution;
    BlockOrder& block;
    std::uint32_t warp = 0;
    unsigned lane = 0;
};

/// The accesses at two places of the code, which are reported once.
struct Pair {
    Finding finding;
    std::unordered_set<std::uint64_t> threads;  ///< of the first place
};

class Races final : public machine::Observer {
  public:
    Races(const machine::LaunchRequest& request, const LaunchName& launch, Checks checks)
        : request_(request),
          launch_(launch),
          in_shared_(has(checks, Check::shared_races)),
          in_global_(has(checks, Check::global_races)),
          has_clusters_(request.cluster.count() > 1) {}
    ~Races() override;
    Races(Races&&) = delete;

    void begin_block(const machine::Block& block, const machine::Lanes& lanes) override;
    void before(const Execution& execution) override;
    void after(const Execution& execution) override;
    void pass_barrier(const machine::Block& block, std::span<const machine::Warp> warps,
                      std::uint32_t id) override;
    void pass_cluster_barrier(const machine::Cluster& cluster) override;

  private:
    using Lines = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;

    BlockOrder& order_of(const machine::Block& block);
    bool is_repeated(const Execution& execution) const;
    void remember(const Execution& execution);
    std::optional<Place> place_of(const Actor& actor, std::uint64_t address);

    void access_memory(const Execution& execution, BlockOrder& block);
    void begin_copies(const Execution& execution, BlockOrder& block);
    void begin_bulk_copies(const Execution& execution, BlockOrder& block);
    void begin_remote_writes(const Execution& execution, BlockOrder& block);
    void begin_copy(const Actor& actor, const PendingCopy& copy, bool waits);
    void end_copies(const Execution& execution, BlockOrder& block, bool bulk, std::uint32_t recent,
                    bool only_sources);
    void use_mbarrier(const Execution& execution, BlockOrder& block);
    void hand_over(const Actor& actor, std::uint64_t barrier, const Knowledge& given);
    void pass_warp_barrier(const Execution& execution, BlockOrder& block);

    void touch(const Actor& actor, std::uint64_t address, std::uint32_t bytes, std::uint8_t kind,
               std::uint32_t pc);
    void visit(const Actor& actor, Cell& cell, const Place& place, Accesses mine);
    bool is_equal_write(const Actor& actor, const Place& place, const Accesses& earlier,
                        const Accesses& mine) const;
    void found(const Actor& actor, const Place& place, const Accesses& earlier, const Accesses& mine);
    Finding describe(const Actor& actor, const Place& place, const Accesses& earlier,
                     const Accesses& mine) const;

    const machine::LaunchRequest& request_;
    const LaunchName& launch_;
    const bool in_shared_, in_global_, has_clusters_;
    std::unordered_map<const machine::Block*, std::unique_ptr<BlockOrder>> blocks_;
    const machine::Block* last_block_ = nullptr;
    BlockOrder* last_ = nullptr;
    Shadow shadow_;
    BlockOrder::Publications publications_;  // by address of global memory
    std::unordered_map<const machine::Cluster*, Phases> clusters_;
    std::array<std::uint64_t, 32> mbarriers_{};  // the lanes' addresses, of the instruction that runs
    struct {
        const machine::Warp* warp = nullptr;
        std::uint32_t pc = 0, lanes = 0;
        std::uint64_t address[32]{};
    } last_load_;
    std::vector<Pair> pairs_;
    std::map<Lines, std::size_t> pair_at_;
};

// --- the instructions --------------------------------------------------------------------------------------

machine::Dim3 position(std::uint64_t linear, const machine::Dim3& shape) {
    return {static_cast<std::uint32_t>(linear % shape.x),
            static_cast<std::uint32_t>(linear / shape.x % shape.y),
            static_cast<std::uint32_t>(linear / shape.x / shape.y)};
}

WarpLanes lanes_of(const machine::Warp& warp, std::uint32_t lanes) {
    return {warp.index, lanes, warp.exists & ~warp.exited};
}

bool is_strong(const Execution& execution) {
    const bool is_atomic = !execution.accesses.empty() && execution.accesses[0].is_atomic;
    return is_atomic ||
           (execution.instruction().bits & (Instruction::strong | Instruction::is_volatile)) != 0;
}

Scope scope_of(const Instruction& i) {
    return (i.bits & Instruction::in_block) != 0 ? Scope::block : Scope::device;
}

template <class T>
T read_lane(const Execution& execution, std::uint32_t place, unsigned lane) {
    T value;
    std::memcpy(&value, execution.lanes.registers + place + lane * sizeof value, sizeof value);
    return value;
}

bool is_matrix(Operation operation) {
    return operation != Operation::ld && operation != Operation::ld_used && operation != Operation::st &&
           operation != Operation::atom && operation != Operation::atom_wide;
}

// Arrivals and tests of an mbarrier have a result before the address.
bool has_state(const program::Key& key) {
    return key.operation == Operation::mbarrier && !key.flags.has(Flag::init) &&
           !key.flags.has(Flag::inval) &&
           (!key.flags.has(Flag::expect_tx) || key.flags.has(Flag::arrive) ||
            key.flags.has(Flag::arrive_drop)) &&
           !key.flags.has(Flag::complete_tx);
}

// Called before anything changes the order or the shadow.
BlockOrder& Races::order_of(const machine::Block& block) {
    last_load_.warp = nullptr;
    if (&block != last_block_) {
        last_block_ = &block;
        last_ = blocks_.at(&block).get();
    }
    return *last_;
}

void Races::begin_block(const machine::Block& block, const machine::Lanes& lanes) {
    auto& order = blocks_[&block];
    if (order == nullptr) order = std::make_unique<BlockOrder>();
    const machine::Dim3 &at = block.index, &grid = request_.grid;
    order->begin(static_cast<std::uint32_t>((std::uint64_t{at.z} * grid.y + at.y) * grid.x + at.x),
                 block.threads);
    order->shared = lanes.shared;
    // Without clusters, accesses of earlier blocks are known by their number.
    const std::size_t count = in_shared_ ? lanes.shared_bytes / 4 + 1 : 0;
    if (has_clusters_ || order->cells.size() != count) shadow_.clear(order->cells, count);
    clusters_.erase(block.cluster);
}

void Races::before(const Execution& execution) {
    const program::Key& key = execution.key();
    const Instruction& i = execution.instruction();
    switch (key.operation) {
        case Operation::copy_async:
            return begin_copies(execution, order_of(*execution.lanes.block));
        case Operation::fence: {
            const bool acquires = (i.bits & Instruction::acquires) != 0,
                       releases = (i.bits & Instruction::releases) != 0;
            if (!acquires && !releases) return;
            return order_of(*execution.lanes.block)
                .fence(lanes_of(*execution.lanes.warp, execution.mask), acquires, releases, scope_of(i));
        }
        case Operation::mbarrier:
        case Operation::copy_arrive:
            // The result may overwrite the addresses.
            for (const unsigned l : LanesOf{execution.mask})
                mbarriers_[l] = read_lane<std::uint64_t>(execution, i.operand[has_state(key) ? 1 : 0], l);
            return;
        default:
            if (execution.accesses.empty() || is_repeated(execution)) return;
            access_memory(execution, order_of(*execution.lanes.block));
            if (!execution.accesses[0].writes && is_strong(execution)) remember(execution);
    }
}

// True for a strong load in a loop that waits: nothing else was seen since the warp executed it last.
bool Races::is_repeated(const Execution& execution) const {
    const machine::MemoryAccess& access = execution.accesses[0];
    return last_load_.warp == execution.lanes.warp && last_load_.pc == execution.pc &&
           last_load_.lanes == access.lanes &&
           std::memcmp(last_load_.address, access.address, sizeof access.address) == 0;
}

void Races::remember(const Execution& execution) {
    const machine::MemoryAccess& access = execution.accesses[0];
    last_load_.warp = execution.lanes.warp;
    last_load_.pc = execution.pc;
    last_load_.lanes = access.lanes;
    std::memcpy(last_load_.address, access.address, sizeof access.address);
}

void Races::after(const Execution& execution) {
    const program::Key& key = execution.key();
    const Instruction& i = execution.instruction();
    const machine::Lanes& s = execution.lanes;
    switch (key.operation) {
        case Operation::bar:
            if (key.flags.has(Flag::arrive))
                order_of(*s.block).arrive_at_barrier(lanes_of(*s.warp, execution.mask), s.barrier);
            return;
        case Operation::bar_warp:
            return pass_warp_barrier(execution, order_of(*s.block));
        case Operation::mbarrier:
        case Operation::copy_arrive:
            return use_mbarrier(execution, order_of(*s.block));
        case Operation::bulk_copy:
        case Operation::bulk_reduce:
            return begin_bulk_copies(execution, order_of(*s.block));
        case Operation::store_async:
        case Operation::reduce_async:
            return begin_remote_writes(execution, order_of(*s.block));
        case Operation::copy_group:
        case Operation::bulk_group: {
            const bool bulk = key.operation == Operation::bulk_group;
            BlockOrder& block = order_of(*s.block);
            if (!key.flags.has(Flag::wait_group)) {
                for (const unsigned l : LanesOf{execution.mask}) ++block.committed(s.warp->index, l, bulk);
            }
            if (!key.flags.has(Flag::commit_group))
                end_copies(execution, block, bulk,
                           key.flags.has(Flag::wait_group) ? static_cast<std::uint32_t>(i.immediate) : 0,
                           key.flags.has(Flag::read));
            return;
        }
        case Operation::cluster_bar: {
            BlockOrder& block = order_of(*s.block);
            const WarpLanes lanes = lanes_of(*s.warp, execution.mask);
            Phases& phases = clusters_[s.block->cluster];
            if (key.flags.has(Flag::wait)) return block.acquire(lanes, phases.complete);
            phases.current.join((i.bits & Instruction::releases) != 0 ? block.release(lanes)
                                                                      : block.release_fenced(lanes));
            return;
        }
        case Operation::heap_allocate:
            // Another thread may have used the memory before, and freed it.
            for (const unsigned l : LanesOf{execution.mask}) {
                const auto address = read_lane<std::uint64_t>(execution, i.operand[0], l);
                if (const auto* allocation = s.memory->find(address))
                    shadow_.forget(address, allocation->bytes);
            }
            return;
        default:
            return;
    }
}

// --- barriers ----------------------------------------------------------------------------------------------

void Races::pass_barrier(const machine::Block& block, std::span<const machine::Warp> warps,
                         std::uint32_t id) {
    std::vector<WarpLanes> waiting;
    bool all = true, counted = false, exited = false;
    for (const machine::Warp& warp : warps) {
        WarpLanes lanes = lanes_of(warp, 0);
        for (const machine::Group& group : warp.groups) {
            if (group.state != machine::Group::State::barrier || group.barrier != id) continue;
            lanes.lanes |= group.mask;
            counted = counted || group.barrier_count != 0;
        }
        // A thread that has exited counts as arrived at a barrier without a number of threads.
        all = all && lanes.all();
        exited = exited || warp.exited != 0;
        if (lanes.lanes != 0) waiting.push_back(lanes);
    }
    if (all && !(counted && exited))
        order_of(block).pass_barrier();
    else
        order_of(block).pass_barrier(waiting, id);
}

void Races::pass_cluster_barrier(const machine::Cluster& cluster) {
    Phases& phases = clusters_[&cluster];
    phases.complete = std::exchange(phases.current, {});
    phases.complete.compact(static_cast<std::uint32_t>(request_.block.count()));
}

// Lanes may name different members, as parts of a warp do.
void Races::pass_warp_barrier(const Execution& execution, BlockOrder& block) {
    for (std::uint32_t left = execution.mask; left != 0;) {
        const auto members = read_lane<std::uint32_t>(execution, execution.instruction().operand[0],
                                                      static_cast<unsigned>(std::countr_zero(left)));
        const WarpLanes lanes = lanes_of(*execution.lanes.warp, members & execution.mask);
        block.pass_warp_barrier(lanes);
        left &= ~members & (left - 1);
    }
}

// Lane by lane, in the order in which the device does it.
void Races::use_mbarrier(const Execution& execution, BlockOrder& block) {
    const program::Key& key = execution.key();
    const Instruction& i = execution.instruction();
    if (key.flags.has(Flag::pending_count)) return;
    const bool starts = key.flags.has(Flag::init), ends = key.flags.has(Flag::inval);
    const bool arrives = key.operation == Operation::copy_arrive || key.flags.has(Flag::arrive) ||
                         key.flags.has(Flag::arrive_drop);
    const bool tests = key.operation == Operation::mbarrier &&
                       (key.flags.empty() || key.flags == program::FlagSet{Flag::parity});
    const std::uint32_t passed = tests ? read_lane<std::uint32_t>(execution, i.operand[0], 0) : 0;
    if (key.operation == Operation::copy_arrive) end_copies(execution, block, false, 0, false);
    const machine::Warp& warp = *execution.lanes.warp;
    // All lanes that arrive at the same object release together.
    std::uint32_t released = 0;
    for (const unsigned l : LanesOf{execution.mask}) {
        const Actor actor{execution, block, warp.index, l};
        const std::uint64_t address = mbarriers_[l];
        touch(actor, address, 8,
              starts ? Accesses::writes
                     : static_cast<std::uint8_t>(Accesses::strong | (tests ? 0 : Accesses::writes)),
              execution.pc);
        const auto place = place_of(actor, address);
        if (!place || place->owner == nullptr) continue;
        Phases& phases = place->owner->mbarriers[static_cast<std::uint32_t>(place->at)];
        if (starts || ends) {
            phases = {};
            continue;
        }
        if (arrives && (released >> l & 1) == 0) {
            std::uint32_t same = 0;
            for (const unsigned k : LanesOf{execution.mask}) {
                if (mbarriers_[k] == address) same |= 1u << k;
            }
            phases.current.join(block.release(lanes_of(warp, same)));
            released |= same;
        }
        const auto state = Mbarrier::read_at(place->owner->shared + place->at);
        if (state && (state->odd != phases.odd || (state->pending == state->expected && state->bytes == 0))) {
            phases.odd = state->odd;
            phases.complete.join(std::exchange(phases.current, {}));
            phases.complete.compact(static_cast<std::uint32_t>(request_.block.count()));
        }
        if ((passed >> l & 1) != 0) block.acquire(lanes_of(warp, 1u << l), phases.complete);
    }
}

void Races::hand_over(const Actor& actor, std::uint64_t barrier, const Knowledge& given) {
    const auto place = place_of(actor, barrier);
    if (place && place->owner != nullptr)
        place->owner->mbarriers[static_cast<std::uint32_t>(place->at)].current.join(given);
}

// --- memory ------------------------------------------------------------------------------------------------

// Null for memory that only one thread sees.
std::optional<Place> Races::place_of(const Actor& actor, std::uint64_t address) {
    const auto in = [&](std::uint64_t window) { return address - window < program::window_bytes; };
    if (in(program::local_window) || in(program::param_window)) return std::nullopt;
    if (!in(program::shared_window)) return Place{nullptr, address};
    const std::uint64_t offset = address - program::shared_window;
    const std::uint64_t slot = offset / program::cluster_stride, at = offset % program::cluster_stride;
    if (slot == 0) return Place{&actor.block, at};
    const auto& members = actor.execution.lanes.block->cluster->members;
    if (slot > members.size() || members[slot - 1].ended) return std::nullopt;
    for (const auto& [block, order] : blocks_) {
        if (order->shared == members[slot - 1].shared) return Place{order.get(), at};
    }
    return std::nullopt;
}

void Races::access_memory(const Execution& execution, BlockOrder& block) {
    const program::Key& key = execution.key();
    const Instruction& i = execution.instruction();
    if (key.flags.has(Flag::local) || key.flags.has(Flag::param)) return;
    if (!in_global_ && key.flags.has(Flag::global) && publications_.empty() && !is_strong(execution)) return;
    const machine::MemoryAccess& access = execution.accesses[0];
    const bool strong = is_strong(execution);
    unsigned kind = (access.writes ? Accesses::writes : 0) | (access.is_atomic ? Accesses::is_atomic : 0);
    if (strong) kind |= Accesses::strong | ((i.bits & Instruction::in_block) != 0 ? Accesses::in_block : 0);
    if (is_matrix(key.operation)) kind |= Accesses::by_warp;
    const StrongAccess order{access.reads, access.writes, (i.bits & Instruction::acquires) != 0,
                             (i.bits & Instruction::releases) != 0, scope_of(i)};
    const std::uint32_t used = key.operation == Operation::ld_used ? i.operand.back() : ~0u;
    for (const unsigned l : LanesOf{access.lanes}) {
        const Actor actor{execution, block, execution.lanes.warp->index, l};
        const std::uint64_t address = access.address[l];
        if (used == ~0u) {
            touch(actor, address, access.bytes, static_cast<std::uint8_t>(kind), execution.pc);
        } else {
            for (std::uint64_t left = used; left != 0;) {
                const auto first = static_cast<unsigned>(std::countr_zero(left));
                const auto bytes = static_cast<unsigned>(std::countr_one(left >> first));
                touch(actor, address + first, bytes, static_cast<std::uint8_t>(kind), execution.pc);
                left &= ~(((std::uint64_t{1} << bytes) - 1) << first);
            }
        }
        if (!strong) continue;
        const auto place = place_of(actor, address);
        if (!place) continue;
        block.access(place->owner != nullptr ? place->owner->publications : publications_, place->at,
                     actor.warp, l, order);
    }
}

// An asynchronous copy accesses its memory until its thread waits for it.
void Races::begin_copy(const Actor& actor, const PendingCopy& copy, bool waits) {
    if (copy.from != 0) touch(actor, copy.from, copy.from_bytes, 0, copy.pc);
    if (copy.to != 0) touch(actor, copy.to, copy.to_bytes, copy.kind, copy.pc);
    if (waits) actor.block.copies(actor.warp, actor.lane).push_back(copy);
}

void Races::begin_copies(const Execution& execution, BlockOrder& block) {
    const Instruction& i = execution.instruction();
    for (const unsigned l : LanesOf{execution.mask}) {
        const Actor actor{execution, block, execution.lanes.warp->index, l};
        PendingCopy copy;
        copy.to = read_lane<std::uint64_t>(execution, i.operand[0], l);
        copy.from = read_lane<std::uint64_t>(execution, i.operand[1], l);
        copy.to_bytes = static_cast<std::uint32_t>(i.immediate);
        copy.from_bytes = read_lane<std::uint32_t>(execution, i.operand[2], l);
        copy.pc = execution.pc;
        copy.kind = Accesses::writes;
        copy.group = block.committed(actor.warp, l, false);
        begin_copy(actor, copy, true);
    }
}

// Operands: destination, source, bytes, and optionally the mbarrier and the mask of blocks.
void Races::begin_bulk_copies(const Execution& execution, BlockOrder& block) {
    const Instruction& i = execution.instruction();
    const bool signals = (i.bits & Instruction::to_shared) != 0,
               multicast = (i.bits & Instruction::multicast) != 0;
    for (const unsigned l : LanesOf{execution.mask}) {
        const Actor actor{execution, block, execution.lanes.warp->index, l};
        PendingCopy copy;
        copy.to = read_lane<std::uint64_t>(execution, i.operand[0], l);
        copy.from = read_lane<std::uint64_t>(execution, i.operand[1], l);
        copy.to_bytes = copy.from_bytes = read_lane<std::uint32_t>(execution, i.operand[2], l);
        copy.pc = execution.pc;
        copy.kind = Accesses::writes;
        if (execution.key().operation == Operation::bulk_reduce)
            copy.kind |= Accesses::strong | Accesses::is_atomic;
        copy.is_bulk = true;
        if (!signals) {
            copy.group = block.committed(actor.warp, l, true);
            begin_copy(actor, copy, true);
            continue;
        }
        const auto barrier = read_lane<std::uint64_t>(execution, i.operand[3], l);
        const Knowledge given = block.own(actor.warp, l);
        if (!multicast) {
            begin_copy(actor, copy, false);
            hand_over(actor, barrier, given);
            continue;
        }
        const auto in_block = [](std::uint64_t address, unsigned rank) {
            return program::shared_window + (address - program::shared_window) % program::cluster_stride +
                   (rank + std::uint64_t{1}) * program::cluster_stride;
        };
        const std::uint64_t to = copy.to;
        for (const unsigned rank : LanesOf{read_lane<std::uint32_t>(execution, i.operand[4], l) & 0xffffu}) {
            copy.to = in_block(to, rank);
            begin_copy(actor, copy, false);
            hand_over(actor, in_block(barrier, rank), given);
        }
    }
}

// Operands: the list of the values' registers, the address and the mbarrier.
void Races::begin_remote_writes(const Execution& execution, BlockOrder& block) {
    const Instruction& i = execution.instruction();
    const bool reduces = execution.key().operation == Operation::reduce_async;
    const std::uint32_t bytes =
        (reduces ? ptx::bytes_of(execution.key().type) : static_cast<std::uint32_t>(i.immediate)) * i.count;
    for (const unsigned l : LanesOf{execution.mask}) {
        const Actor actor{execution, block, execution.lanes.warp->index, l};
        const std::uint8_t kind =
            reduces ? Accesses::writes | Accesses::strong | Accesses::is_atomic : Accesses::writes;
        touch(actor, read_lane<std::uint64_t>(execution, i.operand[1], l), bytes, kind, execution.pc);
        hand_over(actor, read_lane<std::uint64_t>(execution, i.operand[2], l), block.own(actor.warp, l));
    }
}

// The lanes have waited for their copies, except those of their last `recent` groups.
void Races::end_copies(const Execution& execution, BlockOrder& block, bool bulk, std::uint32_t recent,
                       bool only_sources) {
    const std::uint32_t warp = execution.lanes.warp->index;
    if (!block.has_copies(warp)) return;
    for (const unsigned l : LanesOf{execution.mask}) {
        const Actor actor{execution, block, warp, l};
        const std::uint32_t committed = block.committed(warp, l, bulk);
        const bool all = execution.key().operation == Operation::copy_arrive;
        std::erase_if(block.copies(warp, l), [&](PendingCopy& copy) {
            if (copy.is_bulk != bulk || (!all && copy.group + recent >= committed)) return false;
            PendingCopy done = copy;
            if (only_sources) done.to = 0;
            begin_copy(actor, done, false);
            copy.from = 0;
            return !only_sources;
        });
    }
}

// --- races -------------------------------------------------------------------------------------------------

void Races::touch(const Actor& actor, std::uint64_t address, std::uint32_t bytes, std::uint8_t kind,
                  std::uint32_t pc) {
    const auto place = place_of(actor, address);
    if (!place || !(place->owner != nullptr ? in_shared_ : in_global_)) return;
    Accesses mine;
    mine.block = actor.block.number();
    mine.epoch = actor.block.epoch(actor.warp, actor.lane);
    mine.lanes = 1u << actor.lane;
    mine.pc = pc;
    mine.warp = static_cast<std::uint8_t>(actor.warp);
    mine.kind = kind;
    const std::uint64_t end = place->at + bytes;
    for (std::uint64_t at = place->at; at < end; at = (at | 3) + 1) {
        const std::uint64_t cell_at = at & ~std::uint64_t{3};
        const unsigned first = static_cast<unsigned>(at - cell_at);
        const unsigned last = static_cast<unsigned>(std::min<std::uint64_t>(end - cell_at, 4));
        const auto mask = static_cast<std::uint8_t>((1u << last) - (1u << first));
        Cell* cell = nullptr;
        if (place->owner == nullptr) {
            cell = shadow_.find(at);
        } else if (at / 4 < place->owner->cells.size()) {
            cell = &place->owner->cells[at / 4];
        }
        if (cell == nullptr) return;
        const Place here{place->owner, cell_at};
        mine.bytes = mask;
        bool apart = cell->parts != 0;
        for (const Accesses& each : cell->kept) apart = apart || (each.bytes != 0 && each.bytes != mask);
        if (!apart) {
            visit(actor, *cell, here, mine);
            continue;
        }
        std::array<Cell, 4>* parts = shadow_.parts(*cell);
        if (parts == nullptr) return;
        for (unsigned byte = first; byte < last; ++byte) {
            mine.bytes = static_cast<std::uint8_t>(1u << byte);
            visit(actor, (*parts)[byte], here, mine);
        }
    }
}

bool conflict(const Accesses& a, const Accesses& b) {
    if (((a.kind | b.kind) & Accesses::writes) == 0) return false;
    const bool same_block = a.block == b.block;
    if (((a.kind | b.kind) & Accesses::by_warp) != 0 && same_block && a.warp == b.warp) return false;
    const bool both_strong = (a.kind & b.kind & Accesses::strong) != 0;
    return !both_strong || (!same_block && ((a.kind | b.kind) & Accesses::in_block) != 0);
}

/// True if what conflicts with `b` conflicts with `a` too.
bool covers(const Accesses& a, const Accesses& b) {
    if ((b.kind & Accesses::writes) != 0 && (a.kind & Accesses::writes) == 0) return false;
    if ((a.kind & Accesses::strong) == 0) return (a.kind & Accesses::by_warp) == 0;
    return (b.kind & Accesses::strong) != 0 &&
           ((a.kind & Accesses::in_block) != 0 || (b.kind & Accesses::in_block) == 0);
}

// Compares the access with those that the cell keeps, and keeps it. A cell has room for three: a plain write replaces all
// others, because what races with them races with it or precedes it.
void Races::visit(const Actor& actor, Cell& cell, const Place& place, Accesses mine) {
    const bool only_own_block = place.owner != nullptr && !has_clusters_;
    Accesses *same = nullptr, *room = nullptr, *read = nullptr;
    bool has_equal = false;
    for (Accesses& each : cell.kept) {
        if (each.bytes == 0 ||
            (only_own_block && (each.block != mine.block || actor.block.is_seen_by_all(each.epoch)))) {
            each.bytes = 0;
            if (room == nullptr) room = &each;
            continue;
        }
        if (conflict(each, mine) && !actor.block.precedes(each, actor.warp, actor.lane)) {
            if (is_equal_write(actor, place, each, mine))
                has_equal = true;
            else
                found(actor, place, each, mine);
        }
        if (each.block == mine.block && each.warp == mine.warp && each.epoch == mine.epoch &&
            each.kind == mine.kind)
            same = &each;
        else if (room == nullptr && covers(mine, each) && actor.block.precedes(each, actor.warp, actor.lane))
            room = &each;
        else if ((each.kind & Accesses::writes) == 0)
            read = &each;
    }
    if (mine.kind == Accesses::writes) {
        if (has_equal && same != nullptr) mine.lanes |= same->lanes;
        for (Accesses& each : cell.kept) each.bytes = 0;
        cell.kept[0] = mine;
        return;
    }
    if (same != nullptr) {
        mine.lanes |= same->lanes;
        room = same;
    }
    if (room == nullptr) room = read;
    if (room == nullptr && (mine.kind & Accesses::writes) != 0) room = &cell.kept.back();
    if (room != nullptr) *room = mine;
}

// The bytes that a lane stores, at their addresses.
std::uint8_t stored_byte(const Execution& execution, unsigned lane, std::uint64_t offset) {
    const Instruction& i = execution.instruction();
    const std::uint32_t one = ptx::bytes_of(execution.key().type),
                        wide = ptx::bytes_of(execution.key().second);
    const auto element = static_cast<std::uint32_t>(offset / one);
    const std::uint32_t place = i.count == 1 ? i.operand[0] : execution.code.lists[i.operand[0] + element];
    return std::to_integer<std::uint8_t>(
        execution.lanes.registers[place + std::size_t{lane} * wide + offset % one]);
}

// Threads that store the same value do not disturb each other: what is in memory does not depend on their order.
bool Races::is_equal_write(const Actor& actor, const Place& place, const Accesses& earlier,
                           const Accesses& mine) const {
    const Execution& execution = actor.execution;
    if (execution.key().operation != Operation::st || mine.pc != execution.pc) return false;
    if ((earlier.kind & (Accesses::writes | Accesses::is_atomic)) != Accesses::writes) return false;
    const machine::MemoryAccess& access = execution.accesses[0];
    const std::uint64_t window = place.owner == nullptr ? 0 : program::shared_window;
    const auto offset_of = [&](unsigned lane, unsigned byte) {
        const std::uint64_t address = access.address[lane] - window;
        return place.at + byte - (window == 0 ? address : address % program::cluster_stride);
    };
    // A lane of the same instruction has not written yet.
    const bool same_instruction = earlier.block == mine.block && earlier.warp == mine.warp &&
                                  earlier.pc == mine.pc && earlier.epoch == mine.epoch;
    for (unsigned byte = 0; byte < 4; ++byte) {
        if ((mine.bytes >> byte & 1) == 0) continue;
        const std::uint8_t value = stored_byte(execution, actor.lane, offset_of(actor.lane, byte));
        bool compared = false;
        for (const unsigned l : LanesOf{same_instruction ? earlier.lanes & access.lanes : 0}) {
            const std::uint64_t offset = offset_of(l, byte);
            if (offset >= access.bytes) continue;
            if (stored_byte(execution, l, offset) != value) return false;
            compared = true;
        }
        if (compared) continue;
        const std::byte* at = nullptr;
        if (place.owner != nullptr) {
            at = place.owner->shared + place.at + byte;
        } else if (const auto* allocation = execution.lanes.memory->find(place.at + byte)) {
            at = allocation->host + (place.at + byte - allocation->base);
        }
        if (at == nullptr || std::to_integer<std::uint8_t>(*at) != value) return false;
    }
    return true;
}

// The plain load before a loop of compare-and-swap, which compares with what was loaded: CUDA's manual writes it so.
bool is_guess(const program::Code& code, std::uint32_t pc) {
    const Instruction& load = code.instructions[pc];
    if (code.keys[pc].operation != Operation::ld || load.count != 1) return false;
    constexpr std::size_t farthest = 128;
    const std::size_t end = std::min(code.keys.size(), pc + farthest);
    for (std::size_t i = pc + 1; i < end; ++i) {
        const Instruction& cas = code.instructions[i];
        if (code.keys[i].operation == Operation::atom && code.keys[i].flags.has(Flag::cas) &&
            cas.operand[1] == load.operand[1] && cas.immediate == load.immediate &&
            ((cas.bits ^ load.bits) & Instruction::has_base) == 0 &&
            ((cas.bits & Instruction::has_base) == 0 || cas.operand[2] == load.operand[2]))
            return true;
    }
    return false;
}

// Cooperative groups exchange values of a warp without __syncwarp; their users cannot change it.
bool is_of_groups(const program::Code& code, std::uint32_t pc) {
    return code.files[code.lines[pc].file].find("cooperative_groups") != std::string::npos;
}

void Races::found(const Actor& actor, const Place& place, const Accesses& earlier, const Accesses& mine) {
    const program::Code& code = actor.execution.code;
    if (is_of_groups(code, mine.pc) && is_of_groups(code, earlier.pc)) return;
    const bool has_atomic = ((mine.kind | earlier.kind) & Accesses::is_atomic) != 0;
    if (has_atomic && (is_guess(code, mine.pc) || is_guess(code, earlier.pc))) return;
    const auto line_of = [&](std::uint32_t pc) {
        const program::Code::Line& line = actor.execution.code.lines[pc];
        return line.source != 0 ? std::pair{line.file, line.source} : std::pair{~0u, line.ptx};
    };
    auto first = line_of(mine.pc), second = line_of(earlier.pc);
    if (second < first) std::swap(first, second);
    const auto [at, is_new] =
        pair_at_.try_emplace({first.first, first.second, second.first, second.second}, pairs_.size());
    if (is_new) pairs_.push_back({describe(actor, place, earlier, mine), {}});
    constexpr std::size_t most_threads = 1u << 16;
    auto& threads = pairs_[at->second].threads;
    if (threads.size() < most_threads)
        threads.insert(std::uint64_t{mine.block} << 32 | actor.execution.thread(actor.lane));
}

// --- reports -----------------------------------------------------------------------------------------------

std::string bytes_text(const program::Code& code, std::uint32_t pc) {
    const program::Key& key = code.keys[pc];
    const Instruction& i = code.instructions[pc];
    switch (key.operation) {
        case Operation::ld:
        case Operation::ld_used:
        case Operation::st:
        case Operation::atom: {
            const std::uint32_t count = key.operation == Operation::atom ? 1 : i.count;
            const std::uint32_t bytes = ptx::bytes_of(key.type) * count;
            return bytes == 1 ? "1 byte" : fmt::format("{} bytes", bytes);
        }
        case Operation::atom_wide:
            return "16 bytes";
        case Operation::mbarrier:
        case Operation::copy_arrive:
            return "an mbarrier";
        default:
            return "bytes";
    }
}

std::string deed_text(const program::Code& code, const Accesses& accesses) {
    const std::string bytes = bytes_text(code, accesses.pc);
    const Operation operation = code.keys[accesses.pc].operation;
    const bool copies = operation == Operation::copy_async || operation == Operation::bulk_copy ||
                        operation == Operation::bulk_reduce;
    if (operation == Operation::mbarrier || operation == Operation::copy_arrive)
        return (accesses.kind & Accesses::strong) != 0 ? "used " + bytes : "initialised " + bytes;
    if ((accesses.kind & Accesses::is_atomic) != 0) return "changed " + bytes + " atomically";
    if (copies)
        return (accesses.kind & Accesses::writes) != 0 ? "copied to " + bytes : "copied from " + bytes;
    return ((accesses.kind & Accesses::writes) != 0 ? "wrote " : "read ") + bytes;
}

Finding Races::describe(const Actor& actor, const Place& place, const Accesses& earlier,
                        const Accesses& mine) const {
    const program::Code& code = actor.execution.code;
    const bool is_shared = place.owner != nullptr;
    const auto deed = [&](const Accesses& of, unsigned lane) {
        Deed made;
        static_cast<machine::FaultPlace&>(made) =
            machine::place_of(code, request_.block, of.pc, 32u * of.warp + lane);
        made.block = position(of.block, request_.grid);
        made.what = deed_text(code, of);
        return made;
    };
    const bool same_block = earlier.block == mine.block, same_warp = same_block && earlier.warp == mine.warp;
    const std::uint32_t others = same_warp ? earlier.lanes & ~mine.lanes : earlier.lanes;
    Finding made;
    made.check = is_shared ? Check::shared_races : Check::global_races;
    made.pc = mine.pc;
    made.other_pc = earlier.pc;
    made.first = deed(mine, actor.lane);
    made.other = deed(earlier, static_cast<unsigned>(std::countr_zero(others)));
    const bool other_writes = (earlier.kind & Accesses::writes) != 0;
    const bool both_strong = (mine.kind & earlier.kind & Accesses::strong) != 0;
    const bool one_instruction = same_warp && mine.pc == earlier.pc && mine.epoch == earlier.epoch &&
                                 (mine.kind & Accesses::writes) != 0;
    made.first.what +=
        fmt::format(" of {} memory, unordered with {} that {} them,", is_shared ? "shared" : "global",
                    same_warp    ? "a thread of its warp"
                    : same_block ? "a thread of its block"
                                 : "a thread of another block",
                    other_writes ? "wrote" : "read");
    made.address =
        is_shared ? place.at + static_cast<unsigned>(std::countr_zero(unsigned{mine.bytes})) : place.at;
    made.bytes = static_cast<std::uint32_t>(std::popcount(unsigned{mine.bytes}));
    made.space = is_shared ? "shared" : "global";
    if (one_instruction)
        made.advice =
            "which of the different values stays is undefined; let one thread write, or use an atomic operation";
    else if (both_strong)
        made.advice =
            "operations of block scope do not order blocks; use the operation without _block or .cta";
    else if (same_warp)
        made.advice = "put __syncwarp() between the two accesses";
    else if (same_block)
        made.advice = "put __syncthreads() between the two accesses, or make both atomic";
    else if (is_shared)
        made.advice = "put cluster.sync() between the two accesses";
    else
        made.advice =
            "make both accesses atomic, or hand the data over: __threadfence() after the first access and before a "
            "strong write to a flag, and after the strong read of the flag and before the second access";
    return made;
}

Races::~Races() {
    for (Pair& each : pairs_) report(launch_, std::move(each.finding), each.threads.size());
}

}  // namespace

MadeCheck make_race_check(const Request& request, const LaunchName& launch, Checks checks) {
    return std::make_unique<Races>(request, launch, checks);
}

}  // namespace emulated::checks
