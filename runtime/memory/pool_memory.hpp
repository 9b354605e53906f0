// Memory that is allocated and freed in the order of a stream, and the steps when memory runs out.
#pragma once

#include <functional>

#include <bascule/runtime/driver/memory_pool.hpp>
#include <bascule/runtime/memory/owned_memory.hpp>
#include <bascule/runtime/streams/owner.hpp>

namespace bascule {

class Driver;
struct DriverResult;

/// Memory of a device's pool. It is allocated and freed in the order of its stream, without a wait: the next allocation
/// on that stream can reuse it at once. If the stream may not outlive the memory, is a thread's default stream, which
/// other threads cannot name, or is being captured, the memory is allocated for use on all streams.
class PoolMemory final : public OwnedMemory {
  public:
    /// Null if the device has no pool. `stream_lives`: the stream outlives the memory; Bascule keeps its own streams
    /// alive. Throws: CudaError, also if out of memory.
    static std::shared_ptr<OwnedMemory> allocate(std::size_t bytes, StreamRef stream, bool stream_lives);
    ~PoolMemory() override;  // never throws

    void wait_for_allocation() override;
    const StreamRef* order() const noexcept override;

  private:
    void wait_for_allocation(const Driver& driver) const;
    PoolMemory(MemoryPool& pool, std::size_t bytes, StreamRef stream, bool stream_lives);

    MemoryPool& pool_;
    const StreamRef stream_;
    const std::shared_ptr<void> stream_owner_;  // null if Bascule does not own the stream
    const std::uint64_t thread_;                // the thread that allocated; matters for handle 2 only
    const bool in_order_;
    KeptMark made_ = 0;                                 // work enqueued later has a greater mark
    std::atomic<bool> allocation_is_done_{!in_order_};  // all streams may use the memory
};

/// Returns the result of `allocate`. If memory has run out, calls it again after trimming the pool, and once more after
/// waiting for streams and releasing what was kept for their work. The device's context must be current.
DriverResult try_to_allocate(Device device, const std::function<DriverResult()>& allocate);

/// Synchronizes the device, then returns the pool's cached memory to the driver until the pool has at most `keep`
/// bytes, memory in use included. Does nothing without a pool. Throws: CudaError.
void trim_memory_pool(Device device, std::uint64_t keep = 0);

/// Throws: CudaError that says how much was requested and is free.
[[noreturn]] void fail_allocation(const DriverResult& result, std::size_t bytes, const char* kind,
                                  Device device);

}  // namespace bascule
