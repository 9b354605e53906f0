// Shared memory as asynchronous operations see it, to find a missing fence.proxy.async: without it bulk and tensor copies and
// wgmma do not see an ordinary store.
#pragma once

#include <cstddef>

#include "machine/lanes.hpp"

namespace emulated::machine {

struct Cluster;
struct Tile;

/// Runs fence.proxy.async: asynchronous operations now see everything that is in the shared memory of the cluster. The fence
/// counts for the writes of all threads, because the writer or the reader may execute it.
void fence_async_proxy(Cluster& cluster) noexcept;

/// Returns the place of this byte of shared memory in its block's view (Cluster::Member::async_view); null if the kernel
/// needs no view.
std::byte* async_view_of(const Cluster& cluster, const std::byte* shared) noexcept;

/// Checks that the view has the same bytes as the source of an asynchronous operation, which begins at `from` in shared memory
/// and has `bytes` or the runs of a tile. Returns false after a fault, whose message names the instruction.
bool sees_source(Lanes& s, const Instruction* i, u32 lanes, const char* instruction, const std::byte* from,
                 u32 bytes);
bool sees_source(Lanes& s, const Instruction* i, u32 lanes, const char* instruction, const std::byte* from,
                 const Tile& tile);

}  // namespace emulated::machine
