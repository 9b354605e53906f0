// A device's pool of stream-ordered memory: one of ours, beside the default pool that other libraries use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include <bascule/runtime/driver/device.hpp>

struct CUmemPoolHandle_st;
struct CUstream_st;

namespace bascule {

struct DriverResult;

/// What a pool holds, in bytes.
struct PoolUse {
    std::uint64_t used = 0;               ///< by arrays, and by frees that their streams have not reached
    std::uint64_t reserved = 0;           ///< of the device: `used`, and what is cached for later allocations
    std::uint64_t release_threshold = 0;  ///< of `reserved`, so much is kept when the host synchronises
};

/// Made at first use and never destroyed: its memory may outlive everything else. Thread-safe.
class MemoryPool {
  public:
    /// Null where the driver has no pools for the device. Throws: CudaError.
    static MemoryPool* of(Device device);
    /// Null also where it was not made yet.
    static MemoryPool* existing(Device device) noexcept;

    /// Memory in the order of `stream`, or, where that is null, memory that every stream may use at once. The device's context
    /// is current, for `free` too.
    DriverResult allocate(std::uint64_t& address, std::size_t bytes, CUstream_st* stream);
    /// In the order of `stream`, or, where that is null, at once: nothing uses it any more.
    DriverResult free(std::uint64_t address, std::size_t bytes, CUstream_st* stream);

    /// Throws: CudaError.
    PoolUse use() const;
    /// From now on it is this and follows no use. Throws: CudaError.
    void set_release_threshold(std::uint64_t bytes);
    /// What arrays have used at most since the last call decides from now on how much is kept. Before a wait for the device,
    /// after which the driver takes the rest.
    void forget_former_use() noexcept;
    /// What is cached beyond `keep` bytes is the driver's again. Throws: CudaError.
    void trim(std::uint64_t keep) const;
    /// Kernels on `device` may use the pool's memory from now on, also what is allocated already. Throws: CudaError.
    void open_to(Device device) const;

  private:
    MemoryPool(CUmemPoolHandle_st* native, CUstream_st* stream) noexcept : native_(native), stream_(stream) {}
    void note_allocated(std::uint64_t bytes) noexcept;
    void follow(std::uint64_t bytes) noexcept;

    CUmemPoolHandle_st* const native_;
    CUstream_st* const stream_;  // nothing else is enqueued there: an allocation is done when it returns

    std::mutex mutex_;         // of what follows
    std::uint64_t used_ = 0;   // by arrays
    std::uint64_t most_ = 0;   // that they used since forget_former_use
    std::uint64_t basis_ = 0;  // the use that the release threshold follows
    bool follows_use_ = true;
};

}  // namespace bascule
