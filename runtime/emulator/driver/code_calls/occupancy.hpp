// What one multiprocessor holds at once: registers, shared memory, warps. And clusters, which lie across several.
#pragma once

#include <cstddef>

#include <cuda.h>

#include "driver/process.hpp"
#include "machine/grid.hpp"

namespace emulated::driver {

/// 32-bit registers per thread: those that hold a value at once, as far as an assembler would give them. It
/// spills where the text bounds them (.maxnreg, .maxntid, .minnctapersm), and at 255.
int registers_of(const program::Kernel& kernel) noexcept;

/// Blocks of this size that one multiprocessor holds at once; 0 when it holds none.
int resident_blocks(const KernelHandle& handle, int device, int block_size,
                    std::size_t dynamic_shared_bytes) noexcept;

/// The cluster that a launch has, of one block where it has none, and CUDA_SUCCESS; or why it cannot be launched.
struct ClusterChoice {
    CUresult error = CUDA_SUCCESS;
    machine::Dim3 size;
    bool is_explicit = false;  ///< the launch or the kernel asked for it
};
ClusterChoice cluster_of(const CUlaunchConfig& config, const KernelHandle& handle, int device) noexcept;

}  // namespace emulated::driver
