// Memory that graphs allocate: one address for all launches of an allocation node.
#pragma once

#include <cuda.h>

#include "driver/memory_pool.hpp"
#include "driver/process.hpp"
#include "streams/work_graph.hpp"

namespace emulated::driver {

/// Part of a launch of `graph` on `target`, before it: what the nodes allocate and free is so for the host's calls
/// from now on. `frees_first`: what an earlier launch has left is freed. Refused, and nothing changes, where an
/// allocation is there already, or a free node's is not.
CUresult begin_memory(const streams::WorkGraph& graph, bool frees_first, const StreamTarget& target);

/// As cuMemFreeAsync does it, for an operation of `context`.
std::function<void()> free_work(CUdeviceptr address, Context& context);

/// What a device's graphs allocate. It counts as theirs until it is trimmed.
const std::shared_ptr<MemoryPool>& graph_pool(int device);

}  // namespace emulated::driver
