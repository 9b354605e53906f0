// Access of one device's kernels to another device's memory.
#pragma once

#include <bascule/runtime/driver/device.hpp>

namespace bascule {

/// Lets kernels on `device` read and write memory allocated on `peer`, for the rest of the process. Does not cover
/// other libraries' pools and mapped memory. Calls the driver once for each pair. Throws: ArgumentError if the devices
/// cannot access each other; CudaError.
void enable_peer_access(Device device, Device peer);

/// The same for memory at `address`, which may be in another library's pool or mapped. Only its owner can enable access
/// to such memory (cudaMemPoolSetAccess, cuMemSetAccess). Throws: ArgumentError if it has not; as above.
void open_peer_memory(Device device, Device peer, std::uint64_t address);

}  // namespace bascule
