// A stream-ordered memory pool per device, separate from the default pool that other libraries use.
#pragma once

#include <cstddef>
#include <mutex>

#include <bascule/runtime/driver/device.hpp>

struct CUmemPoolHandle_st;
struct CUstream_st;

namespace bascule {

struct DriverResult;

/// The memory of a pool, in bytes.
struct PoolUse {
    std::uint64_t used = 0;      ///< by arrays, including freed ones whose free the stream has not reached
    std::uint64_t reserved = 0;  ///< taken from the device: `used`, and memory cached for later allocations
    std::uint64_t release_threshold =
        0;  ///< at most this much of `reserved` is kept when the host synchronizes
};

/// Made at first use and never destroyed, because its memory may outlive everything else. Thread-safe.
class MemoryPool {
  public:
    /// Null if the driver supports no pools on the device. Throws: CudaError.
    static MemoryPool* of(Device device);
    /// The pool if `of` has made it, else null.
    static MemoryPool* existing(Device device) noexcept;

    /// Allocates in the order of `stream`. If `stream` is null, every stream may use the memory as soon as this
    /// returns. The device's context must be current, also for `free`.
    DriverResult allocate(std::uint64_t& address, std::size_t bytes, CUstream_st* stream);
    /// Frees in the order of `stream`. If `stream` is null, frees at once: nothing may use the memory any more.
    DriverResult free(std::uint64_t address, std::size_t bytes, CUstream_st* stream);

    /// Throws: CudaError.
    PoolUse use() const;
    /// Sets a fixed release threshold, which no longer follows the use. Throws: CudaError.
    void set_release_threshold(std::uint64_t bytes);
    /// Restarts the measurement of peak use and lowers the release threshold if the last peak was low. Called before a
    /// wait for the device, after which the driver releases memory above the threshold.
    void forget_former_use() noexcept;
    /// Returns cached memory to the driver until the pool has at most `keep` bytes, memory in use included. Throws:
    /// CudaError.
    void trim(std::uint64_t keep) const;
    /// Lets kernels on `device` access the pool's memory, including existing allocations. Throws: CudaError.
    void open_to(Device device) const;

  private:
    MemoryPool(CUmemPoolHandle_st* native, CUstream_st* stream) noexcept : native_(native), stream_(stream) {}
    void note_allocated(std::uint64_t bytes) noexcept;
    void follow(std::uint64_t bytes) noexcept;

    CUmemPoolHandle_st* const native_;
    CUstream_st* const
        stream_;  // for allocations without a stream only, so waiting for one takes hardly any time

    std::mutex mutex_;         // guards the members below
    std::uint64_t used_ = 0;   // by arrays, in bytes
    std::uint64_t most_ = 0;   // peak of used_ since forget_former_use
    std::uint64_t basis_ = 0;  // the use that the release threshold is derived from
    bool follows_use_ = true;
};

}  // namespace bascule
