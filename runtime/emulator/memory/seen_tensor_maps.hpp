// The tensor maps that a grid uses, to find a missing fence.proxy.tensormap: without it tensor copies do not see that a kernel
// has changed one.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <unordered_map>

#include "memory/tensor_map.hpp"

namespace emulated::memory {

/// The tensor maps in global memory as the tensor copies of a grid see them. Thread-safe.
class SeenTensorMaps {
  public:
    /// Called before an instruction changes the map at this host address.
    void before_change(const std::byte* at) { see(at); }
    /// Runs fence.proxy.tensormap::generic.acquire: copies now see the map's bytes.
    void acquire(const std::byte* at);
    /// Called when a copy uses the map. Returns false if it has changed since it was seen first or acquired.
    bool see(const std::byte* at);

  private:
    using Bytes = std::array<std::byte, TensorMap::bytes>;
    std::mutex mutex_;
    std::unordered_map<const std::byte*, Bytes> seen_;
};

}  // namespace emulated::memory
