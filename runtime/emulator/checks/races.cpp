// Finds accesses to shared and global memory by threads of one grid that race: unordered, and at least one of them a write.
#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "checks/kernel_checks.hpp"
#include "checks/order/race_order.hpp"
#include "checks/order/race_shadow.hpp"
#include "checks/race_reports.hpp"
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

/// A plain access of a warp whose lanes have one epoch.
struct PlainAccess {
    BlockOrder& block;
    Accesses mine;  ///< without lanes
    std::uint32_t seen = 0, seen_by_warp = 0;
};

/// The accesses at two places of the code, which are reported once.
struct Pair {
    Finding finding;
    std::unordered_set<std::uint64_t> threads;  ///< of the first place
};

/// The instructions other than loads, stores and atomic operations that concern the check.
constexpr Operation watched[] = {
    Operation::bar,          Operation::bar_warp,    Operation::bulk_copy,     Operation::bulk_group,
    Operation::bulk_reduce,  Operation::cluster_bar, Operation::copy_arrive,   Operation::copy_async,
    Operation::copy_group,   Operation::fence,       Operation::heap_allocate, Operation::mbarrier,
    Operation::reduce_async, Operation::store_async,
};

bool is_watched(const program::Key& key) {
    return std::ranges::find(watched, key.operation) != std::end(watched);
}

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
    bool sees_before(const program::Code& code, std::uint32_t pc) const override {
        const program::Key& key = code.keys[pc];
        const bool is_own = key.flags.has(Flag::local) || key.flags.has(Flag::param);
        return is_watched(key) || (machine::accesses_memory(key) && !is_own);
    }
    bool sees_after(const program::Code& code, std::uint32_t pc) const override {
        return is_watched(code.keys[pc]);
    }
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

    bool touch_words(PlainAccess& access, std::uint32_t lanes, std::uint64_t address, std::uint32_t bytes);
    bool touch_word(const PlainAccess& access, Cell& cell, bool only_own_block) const;
    void touch(const Actor& actor, std::uint32_t lanes, std::uint64_t address, std::uint32_t bytes,
               std::uint8_t kind, std::uint32_t pc);
    void touch(const Actor& actor, std::uint64_t address, std::uint32_t bytes, std::uint8_t kind,
               std::uint32_t pc) {
        touch(actor, 1u << actor.lane, address, bytes, kind, pc);
    }
    bool is_over(const Place& place, const Accesses& earlier, const Accesses& mine) const;
    void visit_all(const Actor& actor, Cell& cell, const Place& place, const Accesses& mine);
    bool visit(const Actor& actor, Cell& cell, const Place& place, Accesses mine);
    bool is_equal_write(const Actor& actor, const Place& place, const Accesses& earlier,
                        const Accesses& mine) const;
    void found(const Actor& actor, const Place& place, const Accesses& earlier, const Accesses& mine);

    const machine::LaunchRequest& request_;
    const LaunchName& launch_;
    const bool in_shared_, in_global_, has_clusters_;
    std::unordered_map<const machine::Block*, std::unique_ptr<BlockOrder>> blocks_;
    const machine::Block* last_block_ = nullptr;
    BlockOrder* last_ = nullptr;
    Shadow shadow_;
    BlockOrder::Publications publications_;  // by address of global memory
    // The entries of the clocks that were published. Beyond this number the rest of the grid is not watched.
    static constexpr std::uint64_t most_published = std::uint64_t{1} << 25;
    std::uint64_t published_ = 0;
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

WarpLanes lanes_of(const machine::Warp& warp, std::uint32_t lanes) {
    return {warp.index, lanes, warp.exists & ~warp.exited};
}

// The access of a lane, without its lanes and bytes.
Accesses made_by(const BlockOrder& block, std::uint32_t warp, std::uint32_t lane, std::uint8_t kind,
                 std::uint32_t pc) {
    Accesses made;
    made.block = block.number();
    made.epoch = block.epoch(warp, lane);
    made.pc = pc & Accesses::most_pc;
    made.warp = warp & 31;
    made.kind = kind & 31;
    return made;
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
    last_load_.warp = nullptr;
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
    if (published_ > most_published) return;
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
    if (published_ > most_published) return;
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
    if (!in_global_ && key.flags.has(Flag::global) && publications_.empty() && !is_strong(execution)) return;
    const machine::MemoryAccess& access = execution.accesses[0];
    const bool strong = is_strong(execution);
    unsigned kind = (access.writes ? Accesses::writes : 0) | (access.is_atomic ? Accesses::is_atomic : 0);
    if (strong) kind |= Accesses::strong | ((i.bits & Instruction::in_block) != 0 ? Accesses::in_block : 0);
    if (is_matrix(key.operation)) kind |= Accesses::by_warp;
    const StrongAccess order{access.reads, access.writes, (i.bits & Instruction::acquires) != 0,
                             (i.bits & Instruction::releases) != 0, scope_of(i)};
    const std::uint32_t used = key.operation == Operation::ld_used ? i.operand.back() : ~0u;
    // Plain reads of one address by several lanes count as one access.
    const std::uint32_t warp = execution.lanes.warp->index;
    const bool has_one_epoch = block.has_one_epoch(warp), in_groups = kind == 0 && has_one_epoch;
    const bool is_plain = has_one_epoch && (kind & ~unsigned{Accesses::writes}) == 0 && used == ~0u &&
                          execution.pc <= Accesses::most_pc;
    PlainAccess plain{block, {}, block.seen(), block.seen(warp)};
    if (is_plain) plain.mine = made_by(block, warp, 0, static_cast<std::uint8_t>(kind), execution.pc);
    for (std::uint32_t left = access.lanes; left != 0;) {
        const auto l = static_cast<unsigned>(std::countr_zero(left));
        const Actor actor{execution, block, warp, l};
        const std::uint64_t address = access.address[l];
        std::uint32_t group = 1u << l;
        for (unsigned k = l + 1; in_groups && k < 32 && access.address[k] == address; ++k) group |= 1u << k;
        if (in_groups && l < 16 && access.address[l + 16] == address) group |= 1u << (l + 16);
        group &= left;
        left &= ~group;
        if (is_plain && touch_words(plain, group, address, access.bytes)) continue;
        if (used == ~0u) {
            touch(actor, group, address, access.bytes, static_cast<std::uint8_t>(kind), execution.pc);
        } else {
            for (std::uint64_t rest = used; rest != 0;) {
                const auto first = static_cast<unsigned>(std::countr_zero(rest));
                const auto bytes = static_cast<unsigned>(std::countr_one(rest >> first));
                touch(actor, group, address + first, bytes, static_cast<std::uint8_t>(kind), execution.pc);
                rest &= ~(((std::uint64_t{1} << bytes) - 1) << first);
            }
        }
        if (!strong) continue;
        const auto place = place_of(actor, address);
        if (!place) continue;
        published_ += block.access(place->owner != nullptr ? place->owner->publications : publications_,
                                   place->at, actor.warp, l, order);
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

// The usual case of `touch`, with the same result: whole words whose cells keep one access at most. Returns false if it is
// another case; then `touch` does all of it.
bool Races::touch_words(PlainAccess& access, std::uint32_t lanes, std::uint64_t address,
                        std::uint32_t bytes) {
    if ((address | bytes) % 4 != 0) return false;
    access.mine.lanes = lanes;
    access.mine.bytes = 15;
    const std::uint64_t offset = address - program::shared_window;
    const bool in_shared = offset < 4 * access.block.cells.size();
    if (!in_shared && (!in_global_ || address < program::param_window + program::window_bytes)) return false;
    for (std::uint64_t at = 0; at < bytes; at += 4) {
        Cell* cell = nullptr;
        if (!in_shared)
            cell = shadow_.find(address + at);
        else if ((offset + at) / 4 < access.block.cells.size())
            cell = &access.block.cells[(offset + at) / 4];
        if (cell == nullptr || !touch_word(access, *cell, in_shared && !has_clusters_)) return false;
    }
    return true;
}

bool Races::touch_word(const PlainAccess& access, Cell& cell, bool only_own_block) const {
    const Accesses& mine = access.mine;
    const auto is_room = [&](const Accesses& each) {
        return each.bytes == 0 || (only_own_block && (each.block != mine.block || each.epoch <= access.seen));
    };
    auto& [first, second, third, last] = cell.kept;
    if (cell.parts != 0 || !is_room(second) || !is_room(third) || !is_room(last)) return false;
    if (is_room(first)) {
        first = mine;
        return true;
    }
    const bool same_block = first.block == mine.block, same_warp = same_block && first.warp == mine.warp;
    const bool ordered = same_block && (first.epoch <= access.seen ||
                                        (same_warp && (first.epoch <= access.seen_by_warp ||
                                                       (first.lanes == mine.lanes && mine.is_of_one()))));
    if (first.bytes != mine.bytes || (!ordered && ((first.kind | mine.kind) & Accesses::writes) != 0))
        return false;
    if (mine.kind == Accesses::writes) {
        first = mine;
    } else if (same_warp && first.epoch == mine.epoch && first.kind == mine.kind && first.pc == mine.pc) {
        first.lanes |= mine.lanes;
    } else {
        (ordered && covers(mine, first) ? first : second) = mine;
    }
    return true;
}

// `lanes` have the same epoch and address, and actor.lane is the first of them.
void Races::touch(const Actor& actor, std::uint32_t lanes, std::uint64_t address, std::uint32_t bytes,
                  std::uint8_t kind, std::uint32_t pc) {
    const auto place = place_of(actor, address);
    if (!place || !(place->owner != nullptr ? in_shared_ : in_global_) || pc > Accesses::most_pc) return;
    Accesses mine = made_by(actor.block, actor.warp, actor.lane, kind, pc);
    mine.lanes = lanes;
    const std::uint64_t end = place->at + bytes;
    for (std::uint64_t at = place->at; at < end; at = (at | 3) + 1) {
        const std::uint64_t cell_at = at & ~std::uint64_t{3};
        const unsigned first = static_cast<unsigned>(at - cell_at);
        const unsigned last = static_cast<unsigned>(std::min<std::uint64_t>(end - cell_at, 4));
        Cell* cell = nullptr;
        if (place->owner == nullptr) {
            cell = shadow_.find(at);
        } else if (at / 4 < place->owner->cells.size()) {
            cell = &place->owner->cells[at / 4];
        }
        if (cell == nullptr) return;
        const Place here{place->owner, cell_at};
        mine.bytes = ((1u << last) - (1u << first)) & 15;
        bool apart = cell->parts != 0;
        for (const Accesses& each : cell->kept)
            apart = apart || (each.bytes != mine.bytes && each.bytes != 0 && !is_over(here, each, mine));
        if (!apart) {
            visit_all(actor, *cell, here, mine);
            continue;
        }
        std::array<Cell, 4>* parts = shadow_.parts(*cell);
        if (parts == nullptr) return;
        for (unsigned byte = first; byte < last; ++byte) {
            mine.bytes = (1u << byte) & 15;
            visit_all(actor, (*parts)[byte], here, mine);
        }
    }
}

// True for an access to shared memory by a block that has ended.
bool Races::is_over(const Place& place, const Accesses& earlier, const Accesses& mine) const {
    return place.owner != nullptr && !has_clusters_ && earlier.block != mine.block;
}

void Races::visit_all(const Actor& actor, Cell& cell, const Place& place, const Accesses& mine) {
    if (visit(actor, cell, place, mine)) return;
    for (const unsigned l : LanesOf{mine.lanes}) {
        Accesses one = mine;
        one.lanes = 1u << l;
        visit({actor.execution, actor.block, actor.warp, l}, cell, place, one);
    }
}

// Compares the access with those that the cell keeps, and keeps it. A cell has room for four: a plain write replaces all
// others, because what races with them races with it or precedes it. Returns false, and changes nothing, if the access is one
// of several lanes and an order must be looked up for each.
bool Races::visit(const Actor& actor, Cell& cell, const Place& place, Accesses mine) {
    const bool only_own_block = place.owner != nullptr && !has_clusters_;
    const std::uint32_t seen = actor.block.seen(), seen_by_warp = actor.block.seen(actor.warp);
    const bool is_one = mine.is_of_one();
    Accesses *same = nullptr, *room = nullptr, *read = nullptr;
    bool has_equal = false;
    for (Accesses& each : cell.kept) {
        const bool same_block = each.block == mine.block, same_warp = same_block && each.warp == mine.warp;
        if (each.bytes == 0 || (only_own_block && (!same_block || each.epoch <= seen))) {
            each.bytes = 0;
            if (room == nullptr) room = &each;
            continue;
        }
        bool ordered = same_block &&
                       (each.epoch <= seen ||
                        (same_warp && (each.epoch <= seen_by_warp || (is_one && each.lanes == mine.lanes))));
        if (!ordered && conflict(each, mine)) {
            if (!is_one) return false;
            ordered = actor.block.precedes(each, actor.warp, actor.lane);
            if (!ordered && is_equal_write(actor, place, each, mine))
                has_equal = true;
            else if (!ordered)
                found(actor, place, each, mine);
        }
        if (same_warp && each.epoch == mine.epoch && each.kind == mine.kind && each.pc == mine.pc)
            same = &each;
        else if (ordered && covers(mine, each))
            room = &each;
        else if ((each.kind & Accesses::writes) == 0)
            read = &each;
    }
    if (mine.kind == Accesses::writes) {
        if (has_equal && same != nullptr) mine.lanes |= same->lanes;
        for (Accesses& each : cell.kept) each.bytes = 0;
        cell.kept[0] = mine;
        return true;
    }
    if (same != nullptr) {
        same->lanes |= mine.lanes;
        return true;
    }
    if (room == nullptr) room = read;
    if (room == nullptr && (mine.kind & Accesses::writes) != 0) room = &cell.kept.back();
    if (room != nullptr) *room = mine;
    return true;
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

void Races::found(const Actor& actor, const Place& place, const Accesses& earlier, const Accesses& mine) {
    const program::Code& code = actor.execution.code;
    if (is_intended(code, earlier, mine)) return;
    const auto line_of = [&](std::uint32_t pc) {
        const program::Code::Line& line = actor.execution.code.lines[pc];
        return line.source != 0 ? std::pair{line.file, line.source} : std::pair{~0u, line.ptx};
    };
    auto first = line_of(mine.pc), second = line_of(earlier.pc);
    if (second < first) std::swap(first, second);
    const auto [at, is_new] =
        pair_at_.try_emplace({first.first, first.second, second.first, second.second}, pairs_.size());
    if (is_new)
        pairs_.push_back(
            {describe_race(code, request_, earlier, mine, place.at, place.owner != nullptr), {}});
    constexpr std::size_t most_threads = 1u << 16;
    auto& threads = pairs_[at->second].threads;
    if (threads.size() < most_threads)
        threads.insert(std::uint64_t{mine.block} << 32 | actor.execution.thread(actor.lane));
}

Races::~Races() {
    for (Pair& each : pairs_) report(launch_, std::move(each.finding), each.threads.size());
}

}  // namespace

MadeCheck make_race_check(const Request& request, const LaunchName& launch, Checks checks) {
    return std::make_unique<Races>(request, launch, checks);
}

}  // namespace emulated::checks
