// What the driver knows of an address: whose memory it is, of which kind, and how far it reaches.
#pragma once

#include <cstdint>
#include <optional>

#include <bascule/runtime/driver/device.hpp>

namespace bascule {

/// The kinds of memory that devices use.
enum class PointerKind : std::uint8_t {
    device,   ///< the device's own
    pool,     ///< the same, out of a stream-ordered memory pool
    pinned,   ///< host memory that both sides find at one address
    mapped,   ///< host memory that the device finds at another address
    managed,  ///< migrates to where it is used
};

const char* to_string(PointerKind kind) noexcept;  ///< "device", "pool", ...

/// A value; a snapshot of what the driver said.
struct PointerAttributes {
    PointerKind kind = PointerKind::device;
    int device = 0;                               ///< ordinal
    std::uint64_t context = 0;                    ///< CUcontext; 0 for pool memory, which may have none
    std::uint64_t device_address = 0;             ///< as kernels use it
    std::optional<std::uint64_t> host_address{};  ///< as the host uses it, where it can
    std::uint64_t allocation_address = 0;         ///< where the allocation begins, as kernels see it
    std::uint64_t allocation_bytes = 0;
};

/// What the driver says of `address`, a host or a device one; nothing for memory that no device uses, such as
/// ordinary host memory. Throws: CudaError.
std::optional<PointerAttributes> pointer_attributes(std::uint64_t address, Device device = Device::current());

}  // namespace bascule
