// What the driver knows about an address: owner, kind and extent of its memory.
#pragma once

#include <bascule/runtime/driver/device.hpp>

namespace bascule {

/// The kinds of memory that devices use.
enum class PointerKind : std::uint8_t {
    device,   ///< the device's own
    pool,     ///< device memory from a stream-ordered memory pool
    pinned,   ///< host memory with the same address on host and device
    mapped,   ///< host memory with another address on the device
    managed,  ///< migrates to where it is used
};

const char* to_string(PointerKind kind) noexcept;  ///< "device", "pool", ...

/// A snapshot of the driver's information.
struct PointerAttributes {
    PointerKind kind = PointerKind::device;
    int device = 0;                               ///< ordinal
    std::uint64_t context = 0;                    ///< CUcontext; 0 for pool memory, which may have none
    std::uint64_t device_address = 0;             ///< the address that kernels use
    std::optional<std::uint64_t> host_address{};  ///< the address that the host uses, if it has one
    std::uint64_t allocation_address = 0;         ///< the allocation's first byte, as a device address
    std::uint64_t allocation_bytes = 0;
};

/// Returns the attributes of `address`, a host or device address. Empty for memory that no device uses, such as
/// ordinary host memory. `doing` is for error messages. Throws: CudaError.
std::optional<PointerAttributes> pointer_attributes(std::uint64_t address, Device device = Device::current(),
                                                    const char* doing = "asking whose memory an address is");

}  // namespace bascule
