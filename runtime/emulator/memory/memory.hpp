// Device memory as the interpreter sees it: the allocation that contains an address, and its bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace emulated::memory {
class ManagedHints;

/// An address as a kernel sees it. The host cannot dereference addresses of device memory.
using DeviceAddress = std::uint64_t;

/// The page size of the host.
inline constexpr std::uint64_t page_bytes = 4096;

/// Fills fresh memory, so that reads of uninitialised memory are noticed.
inline constexpr unsigned char poison = 0xCB;

/// The devices whose kernels may use a pool's memory, one bit each.
using PoolAccess = std::atomic<std::uint32_t>;

/// One live allocation. Owned by Memory; valid until it is freed.
struct Allocation {
    enum class Kind : std::uint8_t { device, pinned, managed, module_global, kernel_heap };

    DeviceAddress base = 0;     ///< the first byte, as kernels see it
    std::uint64_t bytes = 0;    ///< exactly as requested
    std::byte* host = nullptr;  ///< the host address of `base`
    Kind kind = Kind::device;
    bool read_only = false;    ///< stores are faults (constants)
    bool kept = false;         ///< the address stays reserved after a free (memory of graphs)
    bool imported = false;     ///< memory of another process
    std::uint64_t serial = 0;  ///< number of the allocation; never reused
    int device = 0;
    /// The number of the context whose kernels can access it; 0: the device's primary context.
    std::uint64_t space = 0;
    static constexpr std::uint64_t every_context = ~std::uint64_t{0};  ///< for memory of pools
    std::shared_ptr<const PoolAccess> access{};  ///< for pool memory; null if peer access decides
    std::shared_ptr<ManagedHints> hints{};       ///< for managed memory
};

/// Finds allocations by address. Implemented by Heap (memory/heap.hpp). Thread-safe: kernels on several workers call it
/// concurrently.
class Memory {
  public:
    virtual ~Memory() = default;

    /// The live allocation that contains `address`, or null. The interpreter caches the last result per instruction and
    /// calls this only after a miss. A running kernel may still hold the result after a free, so the object is kept for
    /// a while (quarantine in memory/heap.cpp).
    virtual const Allocation* find(DeviceAddress address) const noexcept = 0;
};

}  // namespace emulated::memory
