// Memory that graphs allocate: one address for all launches of an allocation node.
#pragma once

#include <cuda.h>

#include "driver/memory_pool.hpp"
#include "driver/process.hpp"
#include "streams/work_graph.hpp"

namespace emulated::driver {

/// Called for a launch of `graph` on `target`: host calls see the memory of its nodes as allocated or freed from now on.
/// With `frees_first`, memory left by an earlier launch is freed first. Fails without a change if memory is already
/// allocated, or not allocated at a free node.
void begin_memory(const streams::WorkGraph& graph, bool frees_first, const StreamTarget& target);

/// The work of a free node in `context`, which frees like cuMemFreeAsync.
std::function<void()> free_work(CUdeviceptr address, Context& context);

/// The pool that counts the memory of a device's graphs. The memory stays reserved until the pool is trimmed.
const std::shared_ptr<MemoryPool>& graph_pool(int device);

}  // namespace emulated::driver
