// A kernel's attributes after compilation, and the number of blocks that run at once.
#pragma once

#include <array>
#include <span>

#include <bascule/runtime/kernels/library.hpp>

namespace bascule {

/// The resources that a compiled kernel uses, and the limits of its blocks. A value type.
struct KernelAttributes {
    int registers = 0;                           ///< per thread
    std::uint32_t static_shared_bytes = 0;       ///< per block
    std::uint32_t local_bytes = 0;               ///< per thread
    std::uint32_t constant_bytes = 0;            ///< of the image
    std::uint32_t max_threads_per_block = 0;     ///< the smaller of the device's and the kernel's limit
    std::uint32_t max_dynamic_shared_bytes = 0;  ///< per block
    int shared_carveout = -1;                    ///< preferred percentage; -1: the driver chooses
    int ptx_version = 0;                         ///< for example 80 for compute_80
    int binary_version = 0;                      ///< for example 90 for sm_90
    bool caches_globals_in_l1 = false;           ///< as if compiled with -Xptxas --dlcm=ca
    bool needs_cluster = false;                  ///< it can be launched only in clusters
    std::array<int, 3> cluster{};                ///< blocks per cluster if compiled in; else 0
    bool non_portable_cluster = false;           ///< clusters of more than 8 blocks are allowed

    bool operator==(const KernelAttributes&) const = default;
};

/// Throws: CudaError.
KernelAttributes attributes_of(const LoadedKernel& kernel, Device device);

/// Resident blocks and warps per multiprocessor. A value type.
struct Occupancy {
    std::uint32_t blocks = 0;  ///< resident at once on a multiprocessor
    double ratio = 0;          ///< resident warps over the maximum of a multiprocessor, 0 to 1
    std::uint32_t grid = 0;    ///< resident at once on the device: the smallest grid that fills it

    bool operator==(const Occupancy&) const = default;
};

/// The occupancy with blocks of `threads` threads and this much dynamic shared memory. Throws: ArgumentError for a
/// block that the kernel does not support; CudaError.
Occupancy occupancy_of(const LoadedKernel& kernel, Device device, std::uint32_t threads,
                       std::uint32_t shared_bytes);

/// The block size with the best occupancy for this kernel and this much dynamic shared memory, as computed by the
/// driver. In threads, at most `limit` (0: no limit). Throws: CudaError.
std::uint32_t best_block_size(const LoadedKernel& kernel, Device device, std::uint32_t shared_bytes,
                              std::uint32_t limit = 0);

/// The same if the dynamic shared memory depends on the block size: `shared_bytes[n]` is for blocks of n threads;
/// larger blocks than it covers use the last entry. It must not be empty.
std::uint32_t best_block_size(const LoadedKernel& kernel, Device device,
                              std::span<const std::uint32_t> shared_bytes, std::uint32_t limit = 0);

/// The most dynamic shared memory, in bytes, with which `blocks` blocks of `threads` threads fit on a multiprocessor; 0
/// if they do not fit. Throws: ArgumentError for a block that the kernel does not support; CudaError.
std::uint32_t most_shared_bytes(const LoadedKernel& kernel, Device device, std::uint32_t blocks,
                                std::uint32_t threads);

/// The preferred division of on-chip memory for launches without LaunchConfig::shared_carveout.
enum class CachePreference : std::uint8_t { none, shared, l1, equal };

/// Sets the preference for later launches on `device`. A hint: the driver may ignore it. Throws: CudaError.
void prefer_cache(const LoadedKernel& kernel, Device device, CachePreference preference);

}  // namespace bascule
