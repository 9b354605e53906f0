// One device's kernels in another's memory.
#pragma once

#include <cstdint>

#include <bascule/runtime/driver/device.hpp>

namespace bascule {

/// Kernels on `device` may read and write what is allocated on `peer`, from now on and for the whole process, but for
/// other libraries' pools and mapped memory; asked of the driver once. Throws: ArgumentError when the two cannot;
/// CudaError.
void enable_peer_access(Device device, Device peer);

/// The same for memory that may be of another library's pool, or mapped, which its owner alone can open
/// (cudaMemPoolSetAccess, cuMemSetAccess). Throws: ArgumentError where it has not; as above.
void open_peer_memory(Device device, Device peer, std::uint64_t address);

}  // namespace bascule
