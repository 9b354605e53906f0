// State shared by the blocks of a cluster: their shared memory, a barrier, and transfers. Without clusters each block is a
// cluster.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "machine/grid.hpp"
#include "machine/transfers.hpp"
#include "machine/warp.hpp"

namespace emulated::machine {

/// Used by one thread at a time.
struct Cluster {
    struct Member {
        std::byte* shared = nullptr;
        std::uint64_t shared_bytes = 0;
        std::vector<Warp>* warps = nullptr;
        bool ended = false;  ///< its shared memory is no longer accessible
        std::byte* async_view =
            nullptr;  ///< its shared memory as asynchronous operations see it (operations/async_view)
    };
    std::vector<Member> members;     ///< by rank
    bool odd_phase = false;          ///< of barrier.cluster
    Observers* observers = nullptr;  ///< LaunchRequest::observers
    Transfers transfers;
    std::vector<std::byte*> barriers;  ///< mbarriers that were initialised

    void begin(std::size_t blocks) {
        members.assign(blocks, {});
        odd_phase = false;
        transfers.clear();
    }
    /// Called when all blocks have ended. Invalidates their mbarriers, so that later blocks in the same memory do not find
    /// them.
    void end() noexcept;
    /// Releases the threads at barrier.cluster.wait if every thread of the cluster has arrived or exited; otherwise returns
    /// false.
    bool release();
};

inline Dim3 place_in(const Dim3& cluster, const Dim3& block) noexcept {
    return {block.x % cluster.x, block.y % cluster.y, block.z % cluster.z};
}
inline std::uint32_t rank_in(const Dim3& cluster, const Dim3& block) noexcept {
    const Dim3 place = place_in(cluster, block);
    return place.x + cluster.x * (place.y + cluster.y * place.z);
}

}  // namespace emulated::machine
