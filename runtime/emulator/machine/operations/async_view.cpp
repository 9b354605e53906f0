#include "machine/operations/async_view.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "machine/cluster.hpp"

namespace emulated::machine {
namespace {

// The block whose shared memory has this byte; null if there is none, or if it has no view.
const Cluster::Member* viewed_member(const Cluster& cluster, const std::byte* shared) noexcept {
    for (const Cluster::Member& member : cluster.members) {
        if (member.async_view != nullptr && shared >= member.shared &&
            shared < member.shared + member.shared_bytes)
            return &member;
    }
    return nullptr;
}

bool refuse_source(Lanes& s, const Instruction* i, u32 lanes, const char* instruction, std::ptrdiff_t byte) {
    misuse(
        s, i, lanes,
        fmt::format(
            "{} reads byte {} of shared memory, which was written by an ordinary store or cp.async without a "
            "fence.proxy.async since. Execute fence.proxy.async (cuda::ptx::fence_proxy_async) in the threads that "
            "write, after the writes and before the barrier",
            instruction, byte));
    return false;
}

// True if the view of the block has these bytes of its shared memory; otherwise false after a fault.
bool sees(Lanes& s, const Instruction* i, u32 lanes, const char* instruction, const Cluster::Member& member,
          const std::byte* from, u32 bytes) {
    const std::byte* const seen = member.async_view + (from - member.shared);
    if (std::memcmp(from, seen, bytes) == 0) return true;
    const std::byte* const first = std::mismatch(from, from + bytes, seen).first;
    return refuse_source(s, i, lanes, instruction, first - member.shared);
}

}  // namespace

void fence_async_proxy(Cluster& cluster) noexcept {
    for (const Cluster::Member& member : cluster.members) {
        if (member.async_view != nullptr && !member.ended)
            std::memcpy(member.async_view, member.shared, member.shared_bytes);
    }
}

std::byte* async_view_of(const Cluster& cluster, const std::byte* shared) noexcept {
    const Cluster::Member* member = viewed_member(cluster, shared);
    return member == nullptr ? nullptr : member->async_view + (shared - member->shared);
}

bool sees_source(Lanes& s, const Instruction* i, u32 lanes, const char* instruction, const std::byte* from,
                 u32 bytes) {
    const Cluster::Member* member = viewed_member(*s.block->cluster, from);
    return member == nullptr || sees(s, i, lanes, instruction, *member, from, bytes);
}

bool sees_source(Lanes& s, const Instruction* i, u32 lanes, const char* instruction, const std::byte* from,
                 const Tile& tile) {
    const Cluster::Member* member = viewed_member(*s.block->cluster, from);
    return member == nullptr || std::ranges::all_of(tile.runs, [&](const Tile::Run& run) {
               return sees(s, i, lanes, instruction, *member, from + run.shared, run.bytes);
           });
}

}  // namespace emulated::machine
