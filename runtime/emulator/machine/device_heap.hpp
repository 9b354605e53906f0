// The heap of kernels: what malloc, free, new and delete in a kernel ask for.
#pragma once

#include <cstdint>
#include <string>

#include "machine/grid.hpp"

namespace emulated::machine {

/// Memory that kernels allocate and that lives until one frees it. Thread-safe: workers ask at the same time.
class DeviceHeap {
  public:
    virtual ~DeviceHeap() = default;

    /// At least `bytes` at a multiple of 16, and of `alignment`, a power of two; 0 when the heap is full.
    virtual memory::DeviceAddress allocate(std::uint64_t bytes, std::uint64_t alignment,
                                           const SourceLine& line) = 0;
    /// Empty, or why the address cannot be freed, as a clause: "the memory there is already freed".
    virtual std::string free(memory::DeviceAddress address, const SourceLine& line) = 0;
};

}  // namespace emulated::machine
