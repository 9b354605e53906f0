// The interface of the heap that malloc, free, new and delete in kernels use.
#pragma once

#include <cstdint>
#include <string>

#include "machine/grid.hpp"

namespace emulated::machine {

/// Memory that a kernel allocates and that lives until a kernel frees it. Thread-safe: workers call it concurrently.
class DeviceHeap {
  public:
    virtual ~DeviceHeap() = default;

    /// Allocates at least `bytes`, aligned to 16 and to `alignment`, a power of two. Returns 0 if the heap is full.
    virtual memory::DeviceAddress allocate(std::uint64_t bytes, std::uint64_t alignment,
                                           const SourceLine& line) = 0;
    /// Frees memory. Returns an empty string, or a clause that says why it cannot: "the memory there is already freed".
    virtual std::string free(memory::DeviceAddress address, const SourceLine& line) = 0;
};

}  // namespace emulated::machine
