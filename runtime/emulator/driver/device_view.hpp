// The memory that a context's kernels can access: that of their own context, of peers, and the host's.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "memory/heap.hpp"
#include "memory/host_pages.hpp"

namespace emulated::driver {

/// The memory that kernels of one context can access, including that of peers. Thread-safe.
class DeviceView final : public memory::Memory {
  public:
    /// The device and the context that memory belongs to.
    struct Place {
        int device = 0;
        std::uint64_t space = 0;  ///< as Allocation::space
        std::uint64_t key() const noexcept { return space << 8 | static_cast<std::uint64_t>(device + 1); }
    };

    /// `host_pages` is null unless kernels may access any host memory.
    DeviceView(const memory::Heap& heap, Place own, memory::HostPages* host_pages) noexcept
        : heap_(heap), own_(own), host_pages_(host_pages) {}

    Place own() const noexcept { return own_; }

    const memory::Allocation* find(memory::DeviceAddress address) const noexcept override {
        const memory::Allocation* found = heap_.find(address);
        if (found == nullptr) return host_pages_ == nullptr ? nullptr : host_pages_->find(address);
        return sees(*found) ? found : nullptr;
    }

    bool sees(const memory::Allocation& allocation) const noexcept {
        using Allocation = memory::Allocation;
        if (allocation.kind == Allocation::Kind::pinned || allocation.kind == Allocation::Kind::managed)
            return true;
        // Peer access does not cover memory pools, which have access flags of their own (cuMemPoolSetAccess).
        if (allocation.access != nullptr) return (allocation.access->load() >> own_.device & 1) != 0;
        const bool of_pool = allocation.space == Allocation::every_context;
        const bool is_own = allocation.device == own_.device && (allocation.space == own_.space || of_pool);
        return is_own || is_peer({allocation.device, allocation.space});
    }

    enum class Added : std::uint8_t { now, before, no_room };
    Added add_peer(Place peer) noexcept {
        if (is_peer(peer)) return Added::before;
        for (auto& slot : peers_) {
            std::uint64_t empty = 0;
            if (slot.compare_exchange_strong(empty, peer.key())) return Added::now;
        }
        return Added::no_room;
    }
    void remove_peers() noexcept { std::ranges::fill(peers_, 0); }
    bool remove_peer(Place peer) noexcept {
        return std::ranges::any_of(peers_, [key = peer.key()](auto& slot) {
            std::uint64_t known = key;
            return slot.compare_exchange_strong(known, 0);
        });
    }

  private:
    bool is_peer(Place place) const noexcept {
        return std::ranges::any_of(peers_, [key = place.key()](const auto& slot) {
            return slot.load(std::memory_order_relaxed) == key;
        });
    }

    const memory::Heap& heap_;
    const Place own_;
    memory::HostPages* const host_pages_;
    std::array<std::atomic<std::uint64_t>, 16> peers_{};  // keys; 0: none
};

}  // namespace emulated::driver
