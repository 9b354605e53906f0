// Memory that comes and goes in the order of a stream, and what is freed when memory runs out.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include <bascule/runtime/driver/memory_pool.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

struct DriverResult;

/// Memory of a device's pool, which its end gives back. Thread-safe as memory is: order your accesses.
///
/// It is freed in the order of the stream that it was allocated for, without a wait, where that comes after every use: work on another stream is
/// followed by a fence of the memory's stream, or its owners are kept until it is done. That is not known of memory that
/// was shared with others, and the stream's handle may be stale where the stream is not ours: then the memory is freed
/// after the host has waited for the device, once for many.
class PoolMemory {
  public:
    /// Null where the device has no pool. Every stream may use the memory at once. Throws: CudaError, for no memory too.
    static std::shared_ptr<PoolMemory> allocate(std::size_t bytes, StreamRef stream);
    ~PoolMemory();  // never throws
    PoolMemory(PoolMemory&&) = delete;

    std::uint64_t address() const noexcept { return block_.address; }
    /// Other code has the address: work that is not known here may use the memory from now on.
    void share() noexcept { shared_.store(true, std::memory_order_relaxed); }

  private:
    PoolMemory(MemoryPool& pool, MemoryPool::Block block, StreamRef stream);
    bool ends_in_order() const noexcept;
    void free_later() const;

    MemoryPool& pool_;
    const MemoryPool::Block block_;
    const StreamRef stream_;
    const std::shared_ptr<void> stream_owner_;  // keeps the stream; null where it is not ours
    const std::uint64_t thread_;                // whose stream handle 2 is
    std::atomic<bool> shared_{false};
};

/// The result of `allocate`, which is called again where memory has run out: after the device was waited for and what was
/// kept for its work was released, and after what the pool has cached was returned to the driver. The device's context is
/// current.
DriverResult try_to_allocate(Device device, const std::function<DriverResult()>& allocate);

/// Returns what the device's pool has cached to the driver, but for `keep` bytes, once the device is synchronised. Does
/// nothing without a pool. Throws: CudaError.
void trim_memory_pool(Device device, std::uint64_t keep = 0);

/// Throws: CudaError that says how much was asked for and is free.
[[noreturn]] void fail_allocation(const DriverResult& result, std::size_t bytes, const char* kind,
                                  Device device);

}  // namespace bascule
