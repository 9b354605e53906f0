// Grid and block from an amount of work.
#pragma once

#include <cstdint>
#include <span>

#include <bascule/interface/arguments/launch_config.hpp>
#include <bascule/runtime/kernels/library.hpp>

namespace bascule {

/// The block size with the best occupancy for this kernel with this much dynamic shared memory, in threads,
/// as the driver computes it. Throws: CudaError.
std::uint32_t best_block_size(const LoadedKernel& kernel, Device device, std::uint32_t shared_bytes);

/// A block of at most `threads` threads, and the grid that gives `work` threads; `work` is (x, y, z) in
/// threads. Throws: ArgumentError for no work, and for more than a grid can have.
LaunchConfig geometry_for(std::span<const std::uint64_t> work, std::uint32_t threads,
                          const LaunchLimits& limits, std::uint32_t shared_bytes);

}  // namespace bascule
