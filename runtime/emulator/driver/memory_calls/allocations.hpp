// Memory that is allocated and freed at once, with all that a driver asks and counts.
#pragma once

#include <cstddef>
#include <initializer_list>

#include <cuda.h>

#include "memory/memory.hpp"

namespace emulated::driver {

CUresult allocate_memory(CUdeviceptr* address, std::size_t bytes, memory::Allocation::Kind kind);

/// Whether other processes may have it: what cuMemAlloc made.
bool can_be_exported(const memory::Allocation& allocation);

/// As `ready`, but neither a fault nor a thread without a context keeps memory from being freed: its owner does not ask
/// again, and the memory has a context.
CUresult ready_to_free();

/// Of one of these kinds. Waits for everything that may still use it.
CUresult free_memory(CUdeviceptr address, std::initializer_list<memory::Allocation::Kind> kinds);

}  // namespace emulated::driver
