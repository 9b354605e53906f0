// Pools of stream-ordered memory: what each has given out.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include <cuda.h>

#include "driver/handles.hpp"
#include "memory/memory.hpp"

namespace emulated::driver {

/// What a CUmemoryPool points to. The memory is the device's; a pool counts, and keeps settings. Thread-safe.
class MemoryPool {
  public:
    static constexpr HandleKind kind = HandleKind::memory_pool;

    using Kind = memory::Allocation::Kind;
    /// Where its memory is: a device's, or the host's, pinned or managed.
    struct Place {
        Kind memory = Kind::device;
        int location = 0;  ///< a CUmemLocationType, of which the id is `device`
        int device = 0;    ///< 0 elsewhere
        auto operator<=>(const Place&) const = default;
    };

    /// `most` bytes; 0: as many as the device has.
    MemoryPool(Place of, bool as_default, std::uint64_t most)
        : place(of), is_default(as_default), most_(most) {}

    const Place place;
    const bool is_default;
    /// Which devices' kernels may use its memory, what is allocated already included. All reach the host's.
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

    /// False when that is more than the pool may hold. What was freed earlier in the order of `stream` is used again first.
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
    /// A free is enqueued on `stream`, and is reached there, before the bytes are given back.
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
        numbers_.used += taken;  // another allocation has them
        if (freed->second.bytes == 0 && freed->second.taken == 0) freed_.erase(freed);
    }
    void give_back(std::uint64_t bytes) {
        const std::lock_guard lock(mutex_);
        numbers_.used -= bytes;
    }
    /// What is above the release threshold: when the host synchronises.
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

    /// What frees will give that one stream has not reached.
    struct Freed {
        std::uint64_t bytes = 0;
        std::uint64_t taken = 0;  ///< and has allocated again since
    };

    const std::uint64_t most_;
    mutable std::mutex mutex_;
    Numbers numbers_;
    std::map<const void*, Freed> freed_;
};

/// Where a client means: "CU_MEM_LOCATION_TYPE_DEVICE, HOST or HOST_NUMA", and NONE for managed memory. The host has one
/// NUMA node here. Nothing for what is no place of a pool.
std::optional<MemoryPool::Place> place_of(const CUmemLocation* location, CUmemAllocationType type) noexcept;

/// The host has synchronised: every pool gives the device back what it need not keep.
void release_unused_pool_memory();

/// Bytes of a pool that are in use, given back with the last copy. A pool lives as long as they do.
using PoolShare = std::shared_ptr<MemoryPool>;

/// `pool` has given them already.
inline PoolShare share_of(const std::shared_ptr<MemoryPool>& pool, std::uint64_t bytes) {
    return {pool.get(), [pool, bytes](MemoryPool*) { pool->give_back(bytes); }};
}

}  // namespace emulated::driver
