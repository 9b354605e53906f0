// A kernel's attributes as compiled, and how many of its blocks run at once.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <bascule/runtime/kernels/library.hpp>

namespace bascule {

/// What a kernel uses as compiled, and what its blocks may use. A value.
struct KernelAttributes {
    int registers = 0;                           ///< per thread
    std::uint32_t static_shared_bytes = 0;       ///< per block
    std::uint32_t local_bytes = 0;               ///< per thread
    std::uint32_t constant_bytes = 0;            ///< of the image
    std::uint32_t max_threads_per_block = 0;     ///< the smaller of the device's and the kernel's limit
    std::uint32_t max_dynamic_shared_bytes = 0;  ///< per block
    int shared_carveout = -1;                    ///< percent that is preferred; -1: the driver chooses
    int ptx_version = 0;                         ///< 80 is compute_80
    int binary_version = 0;                      ///< 90 is sm_90
    bool caches_globals_in_l1 = false;           ///< as if it were compiled with -Xptxas --dlcm=ca
    bool needs_cluster = false;                  ///< it is launched in clusters alone
    std::array<int, 3> cluster{};                ///< blocks of its clusters, where it says them; else 0
    bool non_portable_cluster = false;           ///< clusters of more than 8 blocks are allowed

    bool operator==(const KernelAttributes&) const = default;
};

/// Throws: CudaError.
KernelAttributes attributes_of(const LoadedKernel& kernel, Device device);

/// Resident blocks and warps per multiprocessor. A value.
struct Occupancy {
    std::uint32_t blocks = 0;  ///< resident at once on a multiprocessor
    double ratio = 0;          ///< resident warps over the maximum of a multiprocessor, 0 to 1
    std::uint32_t grid = 0;    ///< resident at once on the device: the least grid that fills it

    bool operator==(const Occupancy&) const = default;
};

/// Of blocks of `threads` threads with this much dynamic shared memory. Throws: ArgumentError for a block
/// that the kernel cannot have; CudaError.
Occupancy occupancy_of(const LoadedKernel& kernel, Device device, std::uint32_t threads,
                       std::uint32_t shared_bytes);

/// The block size with the best occupancy for this kernel with this much dynamic shared memory, in threads, of those
/// up to `limit` (0: all), as the driver computes it. Throws: CudaError.
std::uint32_t best_block_size(const LoadedKernel& kernel, Device device, std::uint32_t shared_bytes,
                              std::uint32_t limit = 0);

/// The same where the dynamic shared memory depends on the block: `shared_bytes[n]` is for n threads, up to the most
/// that a block has or the limit.
std::uint32_t best_block_size(const LoadedKernel& kernel, Device device,
                              std::span<const std::uint32_t> shared_bytes, std::uint32_t limit = 0);

/// The most dynamic shared memory, in bytes, with which `blocks` blocks of `threads` threads are resident at once on a
/// multiprocessor; 0 also where so many are not without any. Throws: ArgumentError for a block that the kernel cannot
/// have; CudaError.
std::uint32_t most_shared_bytes(const LoadedKernel& kernel, Device device, std::uint32_t blocks,
                                std::uint32_t threads);

/// How on-chip memory is best divided where a launch does not say it (LaunchConfig::shared_carveout).
enum class CachePreference : std::uint8_t { none, shared, l1, equal };

/// For later launches on `device`. A hint: the driver may not follow it. Throws: CudaError.
void prefer_cache(const LoadedKernel& kernel, Device device, CachePreference preference);

}  // namespace bascule
