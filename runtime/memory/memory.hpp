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

class OwnedMemory;

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
    /// Device memory from the device's pool (<bascule/runtime/memory/pool_memory.hpp>), in the order of `stream`: use it there,
    /// or after an event of it, or call `settle` first. As above where the device has no pool. A stream that is not Bascule's
    /// lives as long as the memory; where it may not (`stream_lives` is false), and for a thread's default stream, every stream
    /// may use the memory at once, and work on it keeps the memory. Throws as above.
    DeviceBuffer(std::size_t bytes, StreamRef stream, bool stream_lives = true);
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
    /// Where it comes from the driver or from a pool of ours; null for another allocator's, and for no bytes.
    OwnedMemory* owned() const noexcept { return owned_; }
    /// The handle of the stream in whose order it comes and goes, in every thread; `no_order` where there is none.
    std::uint64_t order() const noexcept { return order_; }
    static constexpr std::uint64_t no_order = 0;
    /// Others have the address: see OwnedMemory.
    void share() const noexcept;
    /// Work may use it that is not ordered with its stream: see OwnedMemory. Throws: CudaError.
    void settle() const;
    /// Where the host reads and writes it; null for device memory, and for no bytes.
    void* host() const noexcept { return host_; }

  private:
    void take(std::shared_ptr<OwnedMemory> memory) noexcept;

    std::uint64_t address_ = 0;
    std::size_t bytes_ = 0;
    Device device_;
    MemoryKind kind_ = MemoryKind::device;
    void* host_ = nullptr;
    std::shared_ptr<void> owner_;
    OwnedMemory* owned_ = nullptr;  // owner_, where it is one
    std::uint64_t order_ = no_order;
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
