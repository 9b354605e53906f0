// What a context's kernels see of memory: their own device's, that of peers, and the host's.
#pragma once

#include <atomic>
#include <cstdint>

#include "memory/heap.hpp"

namespace emulated::driver {

/// Thread-safe.
class DeviceView final : public memory::Memory {
  public:
    DeviceView(const memory::Heap& heap, int device) noexcept : heap_(heap), devices_(bit(device)) {}

    const memory::Allocation* find(memory::DeviceAddress address) const noexcept override {
        const memory::Allocation* found = heap_.find(address);
        return found == nullptr || sees(*found) ? found : nullptr;
    }

    bool sees(const memory::Allocation& allocation) const noexcept {
        using Kind = memory::Allocation::Kind;
        const bool is_hosts = allocation.kind == Kind::pinned || allocation.kind == Kind::managed;
        return is_hosts || (devices_.load(std::memory_order_relaxed) >> allocation.device & 1) != 0;
    }

    /// False when it was so already.
    bool add_peer(int device) noexcept { return (devices_.fetch_or(bit(device)) & bit(device)) == 0; }
    void remove_peers(int own_device) noexcept { devices_ = bit(own_device); }
    bool remove_peer(int device) noexcept { return (devices_.fetch_and(~bit(device)) & bit(device)) != 0; }

  private:
    static std::uint32_t bit(int device) noexcept { return std::uint32_t{1} << device; }

    const memory::Heap& heap_;
    std::atomic<std::uint32_t> devices_;
};

}  // namespace emulated::driver
