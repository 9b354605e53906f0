// Memory that is allocated and freed without a stream, with the driver's checks and counters.
#pragma once

#include <cstddef>
#include <initializer_list>

#include <cuda.h>

#include "memory/memory.hpp"

namespace emulated::driver {

void allocate_memory(CUdeviceptr* address, std::size_t bytes, memory::Allocation::Kind kind);

/// True for memory of cuMemAlloc, which can be shared with other processes.
bool can_be_exported(const memory::Allocation& allocation);

/// Like `ready`, but succeeds after a fault and in a thread without a context: owners call a free only once, and the
/// memory has a context of its own.
CUresult ready_to_free();

/// Frees memory of one of these kinds. Waits for everything that may still use it.
void free_memory(CUdeviceptr address, std::initializer_list<memory::Allocation::Kind> kinds);

}  // namespace emulated::driver
