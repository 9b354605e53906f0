// Occupancy and clusters. Sources: the CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", for
// the limits; the occupancy calculator of Nsight Compute for the allocation granularities.
#include "driver/code_calls/occupancy.hpp"

#include <algorithm>
#include <span>

#include "driver/call.hpp"
#include "driver/code_calls/libraries.hpp"
#include "driver/device_limits.hpp"
#include "program/code.hpp"

namespace emulated::driver {

namespace {

constexpr int divided_up(int value, int by) noexcept { return (value + by - 1) / by; }
constexpr int rounded_up(int value, int to) noexcept { return divided_up(value, to) * to; }

/// The number of warps whose registers fit. Each of the four schedulers has a quarter of the registers and allocates them
/// per warp.
int resident_warps(int registers) noexcept {
    const int warp = rounded_up(registers * limits::warp, limits::register_granularity);
    return limits::registers_per_multiprocessor / limits::schedulers / warp * limits::schedulers;
}

std::uint64_t threads_of(const CUlaunchConfig& config) noexcept {
    return std::uint64_t{config.blockDimX} * config.blockDimY * config.blockDimZ;
}

int resident_on_device(const CUlaunchConfig& config, const KernelHandle& handle, int device) noexcept {
    const std::uint64_t threads = threads_of(config);
    if (threads == 0 || threads > limits::threads_per_block) return 0;
    return limits::multiprocessors *
           resident_blocks(handle, device, static_cast<int>(threads), config.sharedMemBytes);
}

/// The maximum number of blocks in a cluster of this kernel.
std::uint32_t most_cluster_blocks(const KernelHandle& handle, int device) noexcept {
    const bool large = handle.settings->takes_large_clusters[static_cast<std::size_t>(device)];
    const std::uint32_t most = large ? program::most_cluster_blocks : limits::portable_cluster_blocks;
    const std::uint32_t own = handle.kernel->max_cluster_rank;
    return own == 0 ? most : std::min(own, most);
}

}  // namespace

int registers_of(const program::Kernel& kernel) noexcept {
    int most = limits::registers_per_thread;
    if (kernel.bound_threads != 0) {
        const int threads = std::min(static_cast<int>(kernel.bound_threads), limits::threads_per_block);
        const int blocks = std::clamp(static_cast<int>(kernel.min_blocks), 1,
                                      architecture_limits().blocks_per_multiprocessor);
        const int warps = blocks * rounded_up(divided_up(threads, limits::warp), limits::schedulers);
        const int each = limits::registers_per_multiprocessor / (warps * limits::warp);
        most = std::min(most, each / limits::registers_step * limits::registers_step);
    }
    if (kernel.max_registers != 0) most = std::min(most, static_cast<int>(kernel.max_registers));
    most = std::max(most, limits::fewest_registers);
    return std::clamp(static_cast<int>(kernel.registers), limits::fewest_registers, most);
}

int resident_blocks(const KernelHandle& handle, int device, int block_size,
                    std::size_t dynamic_shared_bytes) noexcept {
    const program::Kernel& kernel = *handle.kernel;
    const limits::Architecture& has = architecture_limits();
    if (block_size > static_cast<int>(kernel.max_threads)) return 0;
    if (dynamic_shared_bytes > static_cast<std::size_t>(max_dynamic_shared_bytes(handle, device))) return 0;
    const int warps = divided_up(block_size, limits::warp);
    const int by_threads = has.threads_per_multiprocessor / (warps * limits::warp);
    const int by_registers = resident_warps(registers_of(kernel)) / warps;
    const int shared = rounded_up(static_cast<int>(kernel.static_shared_bytes) +
                                      static_cast<int>(dynamic_shared_bytes) + has.shared_reserved_per_block,
                                  has.shared_granularity);
    const int by_shared =
        shared == 0 ? has.blocks_per_multiprocessor : has.shared_per_multiprocessor / shared;
    return std::min({has.blocks_per_multiprocessor, by_threads, by_registers, by_shared});
}

ClusterChoice cluster_of(const CUlaunchConfig& config, const KernelHandle& handle, int device) noexcept {
    const program::Kernel& kernel = *handle.kernel;
    const auto [x, y, z] = kernel.cluster;
    ClusterChoice made;
    const bool declared = x != 0;
    if (declared) made.size = {x, y, z};
    made.is_explicit = declared;
    for (const CUlaunchAttribute& attribute : std::span(config.attrs, config.numAttrs)) {
        if (attribute.id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
        const auto& given = attribute.value.clusterDim;
        const machine::Dim3 size{given.x, given.y, given.z};
        if (size.count() == 0 || (declared && size != made.size))
            return {CUDA_ERROR_INVALID_CLUSTER_SIZE, {}, true};
        made.size = size;
        made.is_explicit = true;
    }
    if (!made.is_explicit && kernel.explicit_cluster) made.error = CUDA_ERROR_INVALID_CLUSTER_SIZE;
    if (made.size.count() == 1) return made;
    const bool divides = config.gridDimX % made.size.x == 0 && config.gridDimY % made.size.y == 0 &&
                         config.gridDimZ % made.size.z == 0;
    const std::uint64_t blocks = made.size.count();
    const bool fits = blocks <= most_cluster_blocks(handle, device) &&
                      blocks <= static_cast<std::uint64_t>(resident_on_device(config, handle, device));
    if (!architecture_limits().clusters)
        made.error = CUDA_ERROR_NOT_SUPPORTED;
    else if (!divides || !fits)
        made.error = CUDA_ERROR_INVALID_CLUSTER_SIZE;
    return made;
}

EMULATED_CONTEXT_API(cuOccupancyMaxActiveClusters, 11070, int* clusters, CUfunction function,
                     const CUlaunchConfig* config) {
    const auto handle = object_of<KernelHandle>(function);
    load_kernel(*handle, *current_context());
    require(clusters != nullptr && config != nullptr);
    require(architecture_limits().clusters, CUDA_ERROR_NOT_SUPPORTED);
    const int device = current_context()->device;
    const ClusterChoice choice = cluster_of(*config, *handle, device);
    check(choice.error);
    const auto blocks = static_cast<int>(choice.size.count());
    return answer(clusters, resident_on_device(*config, *handle, device) / blocks);
}

/// The largest cluster, in blocks, that can be launched with this configuration.
EMULATED_CONTEXT_API(cuOccupancyMaxPotentialClusterSize, 11070, int* size, CUfunction function,
                     const CUlaunchConfig* config) {
    const auto handle = object_of<KernelHandle>(function);
    load_kernel(*handle, *current_context());
    require(size != nullptr && config != nullptr);
    require(architecture_limits().clusters, CUDA_ERROR_NOT_SUPPORTED);
    const int device = current_context()->device;
    const int resident = resident_on_device(*config, *handle, device);
    return answer(size, std::min(resident, static_cast<int>(most_cluster_blocks(*handle, device))));
}

EMULATED_CONTEXT_API(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050, int* blocks, CUfunction function,
                     int block_size, std::size_t dynamic_shared_bytes) {
    const auto handle = object_of<KernelHandle>(function);
    load_kernel(*handle, *current_context());
    require(block_size >= 1 && blocks != nullptr);
    const int device = current_context()->device;
    return answer(blocks, resident_blocks(*handle, device, block_size, dynamic_shared_bytes));
}

EMULATED_API(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000, int* blocks, CUfunction function,
             int block_size, std::size_t dynamic_shared_bytes, unsigned int flags) {
    require(flags <= CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE);
    check(cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, dynamic_shared_bytes));
}

/// The largest block size that keeps the most threads resident.
EMULATED_CONTEXT_API(cuOccupancyMaxPotentialBlockSize, 6050, int* grid_size, int* block_size,
                     CUfunction function, CUoccupancyB2DSize shared_bytes_of,
                     std::size_t dynamic_shared_bytes, int block_limit) {
    const auto handle = object_of<KernelHandle>(function);
    load_kernel(*handle, *current_context());
    int largest = static_cast<int>(handle->kernel->max_threads);
    if (block_limit > 0) largest = std::min(largest, block_limit);
    int most_threads = 0;
    for (int size = (largest + 31) / 32 * 32; size > 0; size -= 32) {
        const int block = std::min(size, largest);
        const std::size_t shared = shared_bytes_of == nullptr ? dynamic_shared_bytes : shared_bytes_of(block);
        const int blocks = resident_blocks(*handle, current_context()->device, block, shared);
        if (blocks * block > most_threads) {
            most_threads = blocks * block;
            *block_size = block;
            *grid_size = blocks * limits::multiprocessors;
        }
    }
    require(most_threads > 0);
}

EMULATED_API(cuOccupancyMaxPotentialBlockSizeWithFlags, 7000, int* grid_size, int* block_size,
             CUfunction function, CUoccupancyB2DSize shared_bytes_of, std::size_t dynamic_shared_bytes,
             int block_limit, unsigned int flags) {
    require(flags <= CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE);
    check(cuOccupancyMaxPotentialBlockSize(grid_size, block_size, function, shared_bytes_of,
                                           dynamic_shared_bytes, block_limit));
}

/// The dynamic shared memory that each of `blocks` blocks on one SM can have, at most what a launch may ask for.
EMULATED_CONTEXT_API(cuOccupancyAvailableDynamicSMemPerBlock, 10020, std::size_t* bytes, CUfunction function,
                     int blocks, int block_size) {
    const auto handle = object_of<KernelHandle>(function);
    load_kernel(*handle, *current_context());
    require(blocks >= 1 && block_size >= 1);
    const limits::Architecture& has = architecture_limits();
    const int each = has.shared_per_multiprocessor / blocks - has.shared_reserved_per_block;
    const int left =
        std::min(each, has.shared_per_block_optin) - static_cast<int>(handle->kernel->static_shared_bytes);
    require(left >= 0);
    const int most = max_dynamic_shared_bytes(*handle, current_context()->device);
    *bytes = static_cast<std::size_t>(std::min(left / has.shared_granularity * has.shared_granularity, most));
}

}  // namespace emulated::driver
