// Memory that comes and goes in the order of a stream, and what is freed when memory runs out.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include <bascule/runtime/driver/memory_pool.hpp>
#include <bascule/runtime/memory/owned_memory.hpp>
#include <bascule/runtime/streams/owner.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

class Driver;
struct DriverResult;

/// Memory of a device's pool. It is allocated and freed in the order of the stream that it is made for, without a wait: what is
/// allocated there next takes it at once. It is allocated for all streams where that stream may be gone before the memory, is
/// a thread's default stream, which other threads cannot name, or is being captured.
class PoolMemory final : public OwnedMemory {
  public:
    /// Null where the device has no pool. `stream_lives`: as long as the memory; Bascule's are kept alive. Throws: CudaError, for no memory too.
    static std::shared_ptr<OwnedMemory> allocate(std::size_t bytes, StreamRef stream, bool stream_lives);
    ~PoolMemory() override;  // never throws

    void settle() override;
    const StreamRef* order() const noexcept override;

  private:
    void wait_for_allocation(const Driver& driver) const;
    PoolMemory(MemoryPool& pool, std::size_t bytes, StreamRef stream, bool stream_lives);

    MemoryPool& pool_;
    const StreamRef stream_;
    const std::shared_ptr<void> stream_owner_;  // null where the stream is not ours
    const std::uint64_t thread_;                // whose stream handle 2 is
    const bool in_order_;
    KeptMark made_ = 0;                      // what was enqueued later has a greater mark
    std::atomic<bool> settled_{!in_order_};  // whether every stream may use it
};

/// The result of `allocate`, which is called again where memory has run out: after what the pool has cached was returned to
/// the driver, and after streams were waited for and what was kept for their work was released. The device's context is
/// current.
DriverResult try_to_allocate(Device device, const std::function<DriverResult()>& allocate);

/// Returns what the device's pool has cached to the driver, but for `keep` bytes, once the device is synchronised. Does
/// nothing without a pool. Throws: CudaError.
void trim_memory_pool(Device device, std::uint64_t keep = 0);

/// Throws: CudaError that says how much was asked for and is free.
[[noreturn]] void fail_allocation(const DriverResult& result, std::size_t bytes, const char* kind,
                                  Device device);

}  // namespace bascule
