// The barrier and the shared memory of a cluster, and elect.sync.
#include "machine/cluster.hpp"

#include <algorithm>
#include <cstring>

#include "machine/groups.hpp"
#include "machine/observer.hpp"
#include "machine/places.hpp"
#include "machine/registry.hpp"

namespace emulated::machine {
namespace {

// Lanes of the warp that have not arrived in this phase and still can.
u32 missing(const Warp& warp, bool odd_phase) {
    const u32 in_this_phase = odd_phase ? warp.arrived_odd : ~warp.arrived_odd;
    return warp.exists & ~warp.exited & ~(warp.cluster_arrived & in_this_phase);
}

const Instruction* arrive_at_cluster(Lanes& s, const Instruction* i) {
    Warp& warp = *s.warp;
    if (const u32 twice = warp.cluster_arrived & s.mask)
        return misuse(s, i, twice,
                      "barrier.cluster.arrive: this thread has arrived already, and has not waited since");
    warp.cluster_arrived |= s.mask;
    warp.arrived_odd = s.block->cluster->odd_phase ? warp.arrived_odd | s.mask : warp.arrived_odd & ~s.mask;
    return i + 1;
}

// The lanes run this instruction again until the phase in which they arrived is over.
const Instruction* wait_for_cluster(Lanes& s, const Instruction* i) {
    Warp& warp = *s.warp;
    if (const u32 never = s.mask & ~warp.cluster_arrived)
        return misuse(s, i, never, "barrier.cluster.wait: this thread has not arrived");
    const u32 in_this_phase = s.block->cluster->odd_phase ? warp.arrived_odd : ~warp.arrived_odd;
    if (const u32 waiting = s.mask & in_this_phase) {
        if (const u32 others = s.mask & ~waiting) part(s, others, index_of(s, i));
        s.mask = waiting;
        s.pc = index_of(s, i);
        s.stop = Stop::cluster_barrier;
        return nullptr;
    }
    warp.cluster_arrived &= ~s.mask;
    return i + 1;
}

u64 offset_in_window(u64 address) { return address - program::shared_window; }

template <class T>
const Instruction* map_address(Lanes& s, const Instruction* i) {
    const T* a = lanes_at<T>(s, i->operand[1]);
    const u32* rank = lanes_at<u32>(s, i->operand[2]);
    T mapped[32];
    for (const unsigned l : LanesOf{s.mask}) {
        const u64 offset = offset_in_window(a[l]);
        // Addresses outside shared memory, or of a block that does not exist, become addresses that are always invalid.
        const bool is_shared = offset < program::window_bytes && rank[l] < program::most_cluster_blocks;
        mapped[l] = static_cast<T>(is_shared ? program::shared_window + offset % program::cluster_stride +
                                                   (rank[l] + u64{1}) * program::cluster_stride
                                             : 0);
    }
    write_lanes(s, i->operand[0], mapped);
    return i + 1;
}

template <class T>
const Instruction* rank_of_address(Lanes& s, const Instruction* i) {
    const T* a = lanes_at<T>(s, i->operand[1]);
    u32 ranks[32];
    for (const unsigned l : LanesOf{s.mask}) {
        const u64 slot = offset_in_window(a[l]) / program::cluster_stride;
        ranks[l] = slot == 0 ? s.block->rank : static_cast<u32>(slot - 1);
    }
    write_lanes(s, i->operand[0], ranks);
    return i + 1;
}

const Instruction* in_cluster(Lanes& s, const Instruction* i) {
    const u64* a = lanes_at<u64>(s, i->operand[0]);
    const u32 wrong =
        lanes_where(s.mask, [&](unsigned l) { return offset_in_window(a[l]) >= program::window_bytes; });
    if (wrong == 0) return i + 1;
    fault(s, i, LaneFault::What::out_of_bounds, wrong, a[__builtin_ctz(wrong)]);
    s.fault.bytes = static_cast<u32>(i->immediate);
    s.fault.space = "shared";
    return nullptr;
}

const Instruction* elect(Lanes& s, const Instruction* i) {
    if (!all_here(s, i, i->operand[2])) return nullptr;
    const u32* members = lanes_at<u32>(s, i->operand[2]);
    u32 leaders[32];
    const u32 elected = lanes_where(s.mask, [&](unsigned l) {
        const u32 here = members[l] & s.mask;
        leaders[l] = static_cast<u32>(__builtin_ctz(here == 0 ? 1u << l : here));
        return leaders[l] == l;
    });
    write_lanes(s, i->operand[0], leaders);
    write_predicate(s, i->operand[1], elected);
    return i + 1;
}

}  // namespace

bool Cluster::release() {
    bool any = false;
    for (const Member& member : members) {
        if (member.ended) continue;
        for (const Warp& warp : *member.warps) {
            if (missing(warp, odd_phase) != 0) return false;
            any = any || (warp.cluster_arrived & ~warp.exited) != 0;
        }
    }
    if (!any) return false;
    if (observers != nullptr) observers->pass_cluster_barrier(*this);
    odd_phase = !odd_phase;
    for (const Member& member : members) {
        if (member.ended) continue;
        for (Warp& warp : *member.warps) {
            for (Group& group : warp.groups) {
                if (group.state == Group::State::cluster_barrier) group.state = Group::State::ready;
            }
        }
    }
    return true;
}

void Cluster::end() noexcept {
    for (std::byte* barrier : barriers) std::memset(barrier, poison_byte, 8);
    barriers.clear();
}

std::byte* place_in_cluster(const Lanes& s, u64 offset, u64 bytes) noexcept {
    const u64 slot = offset / program::cluster_stride, at = offset % program::cluster_stride;
    const auto& members = s.block->cluster->members;
    if (slot == 0 || slot > members.size()) return nullptr;
    const Cluster::Member& member = members[slot - 1];
    if (member.ended || at > member.shared_bytes || member.shared_bytes - at < bytes) return nullptr;
    return member.shared + at;
}

void register_cluster(Registry& r) {
    const auto none = Type::none;
    r.add(Operation::cluster_bar, arrive_at_cluster, {Flag::arrive});
    r.add(Operation::cluster_bar, wait_for_cluster, {Flag::wait});
    for_types<u32, u64>([&]<class T>() {
        const Type type = sizeof(T) == 4 ? Type::u32 : Type::u64;
        r.add(Operation::mapa, type, none, {}, map_address<T>);
        r.add(Operation::getctarank, type, none, {}, rank_of_address<T>);
    });
    r.add(Operation::in_cluster, in_cluster);
    r.add(Operation::elect, elect);
}

}  // namespace emulated::machine
