// Owned device, pinned and managed memory, and stream-ordered copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/runtime/streams/owner.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

class OwnedMemory;

/// The kinds of memory that a device can use.
enum class MemoryKind : std::uint8_t {
    device,   ///< device memory, without a host address
    pinned,   ///< page-locked host memory that the device accesses in place
    managed,  ///< migrates to where it is used
};

/// Memory that a device can use, owned by this object. As thread-safe as memory: order your accesses.
class DeviceBuffer {
  public:
    /// The contents are undefined. 0 bytes allocate nothing and have address 0. Throws: CudaError (if out of memory, it
    /// says how much was requested and is free).
    explicit DeviceBuffer(std::size_t bytes, Device device = Device::current(),
                          MemoryKind kind = MemoryKind::device);
    /// Device memory from the device's pool (<bascule/runtime/memory/pool_memory.hpp>), in the order of `stream`: use
    /// it there, after an event of the stream, or call `wait_for_allocation` first. Without a pool, as above. A stream
    /// that Bascule does not own must outlive the memory. If it may not (`stream_lives` is false), and for a thread's
    /// default stream, all streams may use the memory immediately, and work that uses the memory keeps it alive. Throws
    /// as above.
    DeviceBuffer(std::size_t bytes, StreamRef stream, bool stream_lives = true);
    /// Device memory from another allocator. Destroying `owner` frees it.
    DeviceBuffer(std::uint64_t address, std::size_t bytes, Device device,
                 std::shared_ptr<void> owner) noexcept;
    ~DeviceBuffer();  // never throws
    DeviceBuffer(DeviceBuffer&& other) noexcept;
    DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;

    std::uint64_t address() const noexcept { return address_; }
    std::size_t bytes() const noexcept { return bytes_; }
    Device device() const noexcept { return device_; }
    MemoryKind kind() const noexcept { return kind_; }
    /// Non-null for memory from the driver or from Bascule's pool. Null for other allocators, and for 0 bytes.
    OwnedMemory* owned() const noexcept { return owned_; }
    /// The handle of the stream that orders allocation and free; never 2, which is another stream in each thread.
    /// `no_order` if there is no such stream.
    std::uint64_t order() const noexcept { return order_; }
    static constexpr std::uint64_t no_order = 0;
    /// Call this when other code gets the address: see OwnedMemory.
    void share() const noexcept;
    /// Call this before work that is not ordered with the stream: see OwnedMemory. Throws: CudaError.
    void wait_for_allocation() const;
    /// The host address. Null for device memory, and for 0 bytes.
    void* host() const noexcept { return host_; }

  private:
    void take(std::shared_ptr<OwnedMemory> memory) noexcept;

    std::uint64_t address_ = 0;
    std::size_t bytes_ = 0;
    Device device_;
    MemoryKind kind_ = MemoryKind::device;
    void* host_ = nullptr;
    std::shared_ptr<void> owner_;
    OwnedMemory* owned_ = nullptr;  // owner_, if it is an OwnedMemory
    std::uint64_t order_ = no_order;
};

/// Copies in the order of `stream`, after the work enqueued so far on the streams `producers`, which then wait for the
/// copy. Owners are kept until the copy is done. Pageable memory may be reused when copy_to_device returns, except in a
/// capture; pinned and managed memory when the stream has done the copy. copy_to_host returns true if the memory has
/// been filled, and false for pinned memory, which is filled when the stream has done the copy. Throws: CudaError.
void copy_to_device(StreamRef stream, std::uint64_t destination, const void* source, std::size_t bytes,
                    std::span<const Producer> producers = {}, const Owners& owners = {});
bool copy_to_host(StreamRef stream, void* destination, std::uint64_t source, std::size_t bytes,
                  std::span<const Producer> producers = {}, const Owners& owners = {});

}  // namespace bascule
