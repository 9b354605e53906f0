// Computes what one SM holds at once from registers, shared memory and warps, and the clusters of launches.
#pragma once

#include <cstddef>

#include <cuda.h>

#include "driver/process.hpp"
#include "machine/grid.hpp"

namespace emulated::driver {

/// 32-bit registers per thread: an estimate of what an assembler would allocate, from the registers that are live at once.
/// Bounded by .maxnreg, .maxntid and .minnctapersm, and by 255; beyond that an assembler spills.
int registers_of(const program::Kernel& kernel) noexcept;

/// The number of blocks of this size that one SM holds at once; may be 0.
int resident_blocks(const KernelHandle& handle, int device, int block_size,
                    std::size_t dynamic_shared_bytes) noexcept;

/// The cluster of a launch (one block if it asks for none) and CUDA_SUCCESS, or why it cannot be launched.
struct ClusterChoice {
    CUresult error = CUDA_SUCCESS;
    machine::Dim3 size;
    bool is_explicit = false;  ///< the launch or the kernel asked for it
};
ClusterChoice cluster_of(const CUlaunchConfig& config, const KernelHandle& handle, int device) noexcept;

}  // namespace emulated::driver
