// A device's pool of stream-ordered memory: one of ours, beside the default pool that other libraries use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

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

    /// Memory that every stream may use at once. The device's context is current.
    DriverResult allocate(std::uint64_t& address, std::size_t bytes) const;
    /// Throws: CudaError.
    PoolUse use() const;
    void set_release_threshold(std::uint64_t bytes);
    /// What is cached beyond `keep` bytes is the driver's again. Throws: CudaError.
    void trim(std::uint64_t keep) const;
    /// Kernels on `device` may use the pool's memory from now on, also what is allocated already. Throws: CudaError.
    void open_to(Device device) const;

    /// Memory of the pool that is freed once its device has finished what it has now.
    struct Block {
        std::uint64_t address;
        std::size_t bytes;
    };
    /// True when so much waits that the caller should wait for the device. Throws where there is no memory.
    bool add_waiting(Block block);

    /// What waited at one moment. Goes on waiting unless it was freed.
    class Waiting {
      public:
        explicit Waiting(MemoryPool* pool) noexcept;  ///< null: nothing waits
        ~Waiting();
        Waiting(Waiting&&) = delete;
        /// The device has finished what was enqueued at that moment. Its context is current.
        void free() noexcept;

      private:
        MemoryPool* pool_;
        std::vector<Block> blocks_;
    };

  private:
    MemoryPool(CUmemPoolHandle_st* native, CUstream_st* stream) noexcept : native_(native), stream_(stream) {}

    CUmemPoolHandle_st* const native_;
    CUstream_st* const stream_;  // of allocations alone, so that each of them is done when it returns
    std::mutex mutex_;           // of what follows; not held while the driver is called
    std::vector<Block> waiting_;
    std::uint64_t waiting_bytes_ = 0;
};

}  // namespace bascule
