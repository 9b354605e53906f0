// What the interpreter knows of device memory: which allocation holds an address, and where its bytes are.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace emulated::memory {
class ManagedHints;

/// An address as a kernel sees it. Ordinary device memory is never dereferenceable by the host at this value.
using DeviceAddress = std::uint64_t;

/// Of the host's memory.
inline constexpr std::uint64_t page_bytes = 4096;

/// What fresh memory is filled with, so that it shows.
inline constexpr unsigned char poison = 0xCB;

/// The devices whose kernels may use the memory of a pool, a bit for each.
using PoolAccess = std::atomic<std::uint32_t>;

/// One live allocation. Owned by Memory; valid until it is freed.
struct Allocation {
    enum class Kind : std::uint8_t { device, pinned, managed, module_global, kernel_heap };

    DeviceAddress base = 0;     ///< first byte, as kernels see it
    std::uint64_t bytes = 0;    ///< exactly what was asked for
    std::byte* host = nullptr;  ///< where `base` lies in this process
    Kind kind = Kind::device;
    bool read_only = false;    ///< a store is a fault (constants)
    bool kept = false;         ///< its address stays reserved when it is freed (memory of graphs)
    bool imported = false;     ///< another process's memory
    std::uint64_t serial = 0;  ///< counts allocations; never reused
    int device = 0;
    /// The context whose kernels reach it, by number; 0: the device's primary one.
    std::uint64_t space = 0;
    static constexpr std::uint64_t every_context = ~std::uint64_t{0};  ///< of the device: pools' memory
    std::shared_ptr<const PoolAccess> access{};  ///< of pool memory; null for what peer access opens
    std::shared_ptr<ManagedHints> hints{};       ///< of managed memory
};

/// Finds allocations by address. Implemented by Heap (memory/heap.hpp).
/// Thread-safe: kernels running on several workers ask at the same time.
class Memory {
  public:
    virtual ~Memory() = default;

    /// The live allocation that contains `address`, or null. The interpreter keeps the last answer per
    /// instruction and asks again only when an address leaves it, so this need not be the fastest path. An
    /// answer stays valid while a kernel that may use it runs: freeing waits for the device.
    virtual const Allocation* find(DeviceAddress address) const noexcept = 0;
};

}  // namespace emulated::memory
