// Memory that objects own: device, pinned and managed; and copies in stream order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/runtime/streams/owner.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

class PoolMemory;

/// The kinds of memory that a device can use.
enum class MemoryKind : std::uint8_t {
    device,   ///< on the device; the host has no address for it
    pinned,   ///< in host memory that stays where it is; the device reads and writes it there
    managed,  ///< migrates to where it is used
};

/// Bytes that a device can use and that this object owns. Thread-safe as memory is: order your accesses.
class DeviceBuffer {
  public:
    /// Contents are undefined. 0 bytes allocate nothing and have address 0. Throws: CudaError (out of memory
    /// says how much was asked for and is free).
    explicit DeviceBuffer(std::size_t bytes, Device device = Device::current(),
                          MemoryKind kind = MemoryKind::device);
    /// Device memory from the device's pool (<bascule/runtime/memory/pool_memory.hpp>), which every stream may use at once, and
    /// which is freed in the order of `stream`. As above where the device has no pool. Throws as above.
    DeviceBuffer(std::size_t bytes, StreamRef stream);
    /// Device memory of another allocator: destroying `owner` frees it.
    DeviceBuffer(std::uint64_t address, std::size_t bytes, Device device,
                 std::shared_ptr<void> owner) noexcept;
    ~DeviceBuffer();  // never throws
    DeviceBuffer(DeviceBuffer&& other) noexcept;
    DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;

    std::uint64_t address() const noexcept { return address_; }
    std::size_t bytes() const noexcept { return bytes_; }
    Device device() const noexcept { return device_; }
    MemoryKind kind() const noexcept { return kind_; }
    /// Others have the address: work that Bascule does not know may use the memory, and its end waits for that.
    void share() const noexcept;
    /// Whether it comes from the driver or from a pool of ours, not from another allocator.
    bool is_ours() const noexcept { return owner_ == nullptr || pool_memory_ != nullptr; }
    /// Where the host reads and writes it; null for device memory, and for no bytes.
    void* host() const noexcept { return host_; }

  private:
    std::uint64_t address_ = 0;
    std::size_t bytes_ = 0;
    Device device_;
    MemoryKind kind_ = MemoryKind::device;
    void* host_ = nullptr;
    std::shared_ptr<void> owner_;        // null: the driver's own memory
    PoolMemory* pool_memory_ = nullptr;  // owner_, where it is one
};

/// Copies in the order of `stream`, after what `producers` have enqueued; they wait for the copy in turn.
/// Owners are kept until it is done. Host memory that is not pinned may be reused when copy_to_device
/// returns, and is filled when copy_to_host returns, which then says true; false: pinned memory, filled once
/// the stream gets there. Throws: CudaError.
void copy_to_device(StreamRef stream, std::uint64_t destination, const void* source, std::size_t bytes,
                    std::span<const Producer> producers = {}, const Owners& owners = {});
bool copy_to_host(StreamRef stream, void* destination, std::uint64_t source, std::size_t bytes,
                  std::span<const Producer> producers = {}, const Owners& owners = {});

}  // namespace bascule
