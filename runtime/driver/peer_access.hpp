// One device's kernels in another's memory.
#pragma once

#include <bascule/runtime/driver/device.hpp>

namespace bascule {

/// Kernels on `device` may read and write what is allocated on `peer`, from now on and for the whole process;
/// asked of the driver once. Memory of a pool (cudaMallocAsync) is its owner's to open: cudaMemPoolSetAccess.
/// Throws: ArgumentError when the two cannot; CudaError.
void enable_peer_access(Device device, Device peer);

}  // namespace bascule
