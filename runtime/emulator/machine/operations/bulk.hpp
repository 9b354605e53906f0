// Addresses and destinations of asynchronous copies. Each file that includes it compiles its own copy, as it does of
// machine/places.hpp.
#pragma once

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "machine/cluster.hpp"
#include "machine/groups.hpp"
#include "machine/mbarrier.hpp"
#include "machine/operations/async_view.hpp"
#include "machine/places.hpp"
#include "machine/warp.hpp"
#include "races/access_log.hpp"

namespace emulated::machine {
namespace {

struct Access {
    Space space = Space::global;
    u64 address = 0;
    u32 bytes = 0, alignment = 1;
    bool write = false;
};

[[maybe_unused]] std::byte* fail(Lanes& s, const Instruction* i, LaneFault::What what, unsigned lane,
                                 const Access& access) {
    fault(s, i, what, 1u << lane, access.address);
    s.fault.bytes = what == LaneFault::What::misaligned ? access.alignment : access.bytes;
    s.fault.write = access.write;
    s.fault.space = access.space == Space::generic ? "shared" : name_of(access.space);
    return nullptr;
}

// The host address of a lane's access; null after a fault. Space::generic stands for the cluster's shared memory.
[[maybe_unused]] std::byte* place(Lanes& s, const Instruction* i, unsigned lane, const Access& access) {
    using What = LaneFault::What;
    const auto [space, address, bytes, alignment, write] = access;
    if (address % alignment != 0) return fail(s, i, What::misaligned, lane, access);
    const bool is_shared = address - program::shared_window < program::window_bytes;
    if (space == Space::generic && !is_shared) return fail(s, i, What::out_of_bounds, lane, access);
    bool read_only = false;
    const u64 at = place_of(s, space, lane, address, bytes, write, read_only);
    if (at == 0) return fail(s, i, read_only ? What::read_only : What::out_of_bounds, lane, access);
    return reinterpret_cast<std::byte*>(at);  // NOLINT(performance-no-int-to-ptr)
}

[[maybe_unused]] Space shared_space(const Instruction* i) {
    return (i->bits & Instruction::in_cluster) != 0 ? Space::generic : Space::shared;
}

[[maybe_unused]] void log_access(Lanes& s, u64 address, u32 bytes, races::Access access) {
    if (s.log != nullptr && bytes != 0) s.log->add(address, bytes, access);
}

/// The address at the same offset in the shared memory of the cluster's block with this rank.
[[maybe_unused]] u64 address_in_block(u64 address, unsigned rank) {
    return program::shared_window + (address - program::shared_window) % program::cluster_stride +
           (rank + u64{1}) * program::cluster_stride;
}

// --- destinations ------------------------------------------------------------------------------------------

[[maybe_unused]] const Instruction* complain(Lanes& s, const Instruction* i, unsigned lane, u64 address,
                                             const char* error) {
    return misuse(s, i, 1u << lane,
                  fmt::format("the mbarrier at byte {} of shared memory: {}",
                              (address - program::shared_window) % program::cluster_stride, error));
}

constexpr const char* not_initialised = "it is not initialised (mbarrier.init)";

// Adds one lane's copy to one destination. Returns false after a fault.
[[maybe_unused]] bool add_bulk_copy(Lanes& s, const Instruction* i, unsigned lane, Transfer transfer,
                                    const Access& to, u64 barrier) {
    transfer.to = place(s, i, lane, to);
    if (transfer.to == nullptr) return false;
    if (barrier != 0) {
        transfer.barrier = place(s, i, lane, {Space::generic, barrier, 8, 8, true});
        if (transfer.barrier == nullptr) return false;
        if (!Mbarrier::read_at(transfer.barrier)) {
            complain(s, i, lane, barrier, not_initialised);
            return false;
        }
        transfer.view = async_view_of(*s.block->cluster, transfer.to);
        transfer.view_bytes = to.bytes;
        if (transfer.reduce == nullptr) {
            std::memset(transfer.to, poison_byte, to.bytes);
            if (transfer.view != nullptr) std::memset(transfer.view, poison_byte, to.bytes);
        }
    }
    s.block->cluster->transfers.add(std::move(transfer));
    return true;
}

}  // namespace
}  // namespace emulated::machine
