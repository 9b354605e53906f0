// Pools of stream-ordered memory, which count what was allocated from them.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include <cuda.h>

#include "driver/handles.hpp"
#include "memory/memory.hpp"

namespace emulated::driver {

/// The object of a CUmemoryPool. The memory is in memory::Heap; the pool has only settings and counters. Thread-safe.
class MemoryPool {
  public:
    using Kind = memory::Allocation::Kind;
    /// Where the pool's memory is: on a device, or pinned or managed memory of the host.
    struct Place {
        Kind memory = Kind::device;
        int location = 0;  ///< a CUmemLocationType; `device` is its id
        int device = 0;    ///< 0 unless the memory is on a device
        auto operator<=>(const Place&) const = default;
    };

    /// `most` is the maximum size in bytes; 0 means no limit but the device's.
    MemoryPool(Place of, bool as_default, std::uint64_t most)
        : place(of), is_default(as_default), most_(most) {}

    const Place place;
    const bool is_default;
    /// The devices whose kernels may use the pool's memory, including existing allocations. All may use host memory.
    const std::shared_ptr<memory::PoolAccess> access = std::make_shared<memory::PoolAccess>(
        place.memory == Kind::device ? std::uint32_t{1} << place.device : ~std::uint32_t{0});

    struct Numbers {
        std::uint64_t release_threshold = 0;
        std::uint64_t reserved = 0, reserved_high = 0;
        std::uint64_t used = 0, used_high = 0;
        std::uint64_t reuse_follow_events = 1, reuse_opportunistic = 1, reuse_internal = 1;  // flags
    };
    Numbers numbers() const {
        const std::lock_guard lock(mutex_);
        return numbers_;
    }
    template <class Change>
    void change(const Change& change) {
        const std::lock_guard lock(mutex_);
        change(numbers_);
    }

    /// Reserves bytes, first from what was freed earlier in the order of `stream`. Returns false if the pool's maximum
    /// would be exceeded.
    bool take(std::uint64_t bytes, const void* stream) {
        const std::lock_guard lock(mutex_);
        const auto freed = freed_.find(stream);
        const std::uint64_t again = freed == freed_.end() ? 0 : std::min(bytes, freed->second.bytes);
        const std::uint64_t more = bytes - again;
        if (most_ != 0 && more > most_ - std::min(most_, numbers_.used)) return false;
        if (again != 0) {
            freed->second.bytes -= again;
            freed->second.taken += again;
        }
        numbers_.used += more;
        numbers_.reserved = std::max(numbers_.reserved, numbers_.used);
        numbers_.used_high = std::max(numbers_.used_high, numbers_.used);
        numbers_.reserved_high = std::max(numbers_.reserved_high, numbers_.reserved);
        return true;
    }
    /// A free is enqueued on `stream` (`begin_free`), then executed there (`end_free`), and then the bytes are returned.
    void begin_free(std::uint64_t bytes, const void* stream) {
        const std::lock_guard lock(mutex_);
        freed_[stream].bytes += bytes;
    }
    void end_free(std::uint64_t bytes, const void* stream) {
        const std::lock_guard lock(mutex_);
        const auto freed = freed_.find(stream);
        if (freed == freed_.end()) return;
        const std::uint64_t taken = std::min(bytes, freed->second.taken);
        freed->second.taken -= taken;
        freed->second.bytes -= std::min(bytes - taken, freed->second.bytes);
        numbers_.used += taken;  // a later allocation uses these bytes
        if (freed->second.bytes == 0 && freed->second.taken == 0) freed_.erase(freed);
    }
    void give_back(std::uint64_t bytes) {
        const std::lock_guard lock(mutex_);
        numbers_.used -= bytes;
    }
    /// Releases what exceeds the release threshold. Called when the host synchronises.
    void release_unused() {
        const std::lock_guard lock(mutex_);
        trim(numbers_.release_threshold);
    }
    void trim_to(std::uint64_t least) {
        const std::lock_guard lock(mutex_);
        trim(least);
    }

  private:
    void trim(std::uint64_t least) {
        numbers_.reserved = std::min(numbers_.reserved, std::max(numbers_.used, least));
    }

    /// Bytes of frees that were enqueued on one stream and not executed yet.
    struct Freed {
        std::uint64_t bytes = 0;
        std::uint64_t taken = 0;  ///< reused by later allocations
    };

    const std::uint64_t most_;
    mutable std::mutex mutex_;
    Numbers numbers_;
    std::map<const void*, Freed> freed_;
};

/// Converts a client's location: "CU_MEM_LOCATION_TYPE_DEVICE, HOST or HOST_NUMA", and NONE for managed memory. The
/// emulated host has one NUMA node. Throws CUDA_ERROR_INVALID_VALUE if a pool cannot have that location.
MemoryPool::Place place_of(const CUmemLocation* location, CUmemAllocationType type);

/// Lets every pool release unused memory. Called when the host has synchronised.
void release_unused_pool_memory();

/// A share of a pool's bytes, returned when its last copy is destroyed. A pool lives as long as its shares.
using PoolShare = std::shared_ptr<MemoryPool>;

/// The bytes must have been reserved by `pool->take`.
inline PoolShare share_of(const std::shared_ptr<MemoryPool>& pool, std::uint64_t bytes) {
    return {pool.get(), [pool, bytes](MemoryPool*) { pool->give_back(bytes); }};
}

}  // namespace emulated::driver
