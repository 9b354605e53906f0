#include <algorithm>

#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/kernels/occupancy.hpp>

namespace bascule {
namespace {

/// The kernel's function in the current context.
CUfunction function_of(const LoadedKernel& kernel, const char* doing) {
    const Driver& driver = Driver::get();
    CUfunction function = nullptr;
    driver.check(driver.api().cuKernelGetFunction(&function, kernel.native), doing);
    return function;
}

/// The number of resident blocks of `threads` threads, in the current context.
int resident_blocks(const LoadedKernel& kernel, std::uint32_t threads, std::uint32_t shared_bytes) {
    const Driver& driver = Driver::get();
    const char* const doing = "asking how many blocks run at once";
    CUfunction function = function_of(kernel, doing);
    int blocks = 0;
    driver.check(driver.api().cuOccupancyMaxActiveBlocksPerMultiprocessor(
                     &blocks, function, static_cast<int>(threads), shared_bytes),
                 doing);
    return blocks;
}

/// Data for the driver's callback, which has no user parameter.
thread_local std::span<const std::uint32_t> shared_bytes_by_threads;

std::size_t CUDA_CB shared_bytes_of_block(int threads) {
    const auto index = static_cast<std::size_t>(std::max(threads, 0));
    return shared_bytes_by_threads[std::min(index, shared_bytes_by_threads.size() - 1)];
}

std::uint32_t choose_block_size(const LoadedKernel& kernel, Device device, CUoccupancyB2DSize shared_bytes_of,
                                std::uint32_t shared_bytes, std::uint32_t limit) {
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    const char* const doing = "choosing a block size";
    CUfunction function = function_of(kernel, doing);
    int grid = 0;
    int block = 0;
    driver.check(driver.api().cuOccupancyMaxPotentialBlockSize(&grid, &block, function, shared_bytes_of,
                                                               shared_bytes, static_cast<int>(limit)),
                 doing);
    return static_cast<std::uint32_t>(std::max(block, 1));
}

}  // namespace

KernelAttributes attributes_of(const LoadedKernel& kernel, Device device) {
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    const auto ask = [&](CUfunction_attribute which) {
        return driver.attribute_of(kernel.native, device.ordinal(), which);
    };
    KernelAttributes attributes;
    attributes.registers = kernel.registers;
    attributes.static_shared_bytes = kernel.static_shared_bytes;
    attributes.local_bytes = kernel.local_bytes;
    attributes.constant_bytes = static_cast<std::uint32_t>(ask(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES));
    attributes.max_threads_per_block = kernel.limits.threads;
    attributes.max_dynamic_shared_bytes = kernel.limits.shared_bytes;
    attributes.shared_carveout = ask(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
    attributes.ptx_version = ask(CU_FUNC_ATTRIBUTE_PTX_VERSION);
    attributes.binary_version = ask(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    attributes.caches_globals_in_l1 = ask(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA) != 0;
    attributes.needs_cluster = ask(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET) != 0;
    attributes.cluster = {ask(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH),
                          ask(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT),
                          ask(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)};
    attributes.non_portable_cluster = ask(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) != 0;
    return attributes;
}

Occupancy occupancy_of(const LoadedKernel& kernel, Device device, std::uint32_t threads,
                       std::uint32_t shared_bytes) {
    check({.grid = {}, .block = {threads}, .shared_bytes = shared_bytes}, kernel.limits);
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    const int blocks = resident_blocks(kernel, threads, shared_bytes);
    const int warp = driver.attribute_of(device.ordinal(), CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    const int most =
        driver.attribute_of(device.ordinal(), CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / warp;
    const int each = (static_cast<int>(threads) + warp - 1) / warp;
    return {static_cast<std::uint32_t>(blocks), static_cast<double>(blocks * each) / most,
            static_cast<std::uint32_t>(blocks * device.multiprocessors())};
}

std::uint32_t best_block_size(const LoadedKernel& kernel, Device device, std::uint32_t shared_bytes,
                              std::uint32_t limit) {
    return choose_block_size(kernel, device, nullptr, shared_bytes, limit);
}

std::uint32_t best_block_size(const LoadedKernel& kernel, Device device,
                              std::span<const std::uint32_t> shared_bytes, std::uint32_t limit) {
    shared_bytes_by_threads = shared_bytes;
    return choose_block_size(kernel, device, &shared_bytes_of_block, 0, limit);
}

std::uint32_t most_shared_bytes(const LoadedKernel& kernel, Device device, std::uint32_t blocks,
                                std::uint32_t threads) {
    check({.grid = {}, .block = {threads}}, kernel.limits);
    const ContextGuard context(device.context());
    // More memory means fewer blocks. A binary search over the driver's answers needs no knowledge of the allocation
    // granularity.
    const auto fits = [&](std::uint32_t bytes) {
        return static_cast<std::uint32_t>(resident_blocks(kernel, threads, bytes)) >= blocks;
    };
    std::uint32_t least = 0, most = kernel.limits.shared_bytes;
    if (blocks == 0 || !fits(least)) return 0;
    while (least < most) {
        const std::uint32_t middle = most - (most - least) / 2;
        if (fits(middle)) {
            least = middle;
        } else {
            most = middle - 1;
        }
    }
    return least;
}

void prefer_cache(const LoadedKernel& kernel, Device device, CachePreference preference) {
    static constexpr CUfunc_cache native[] = {CU_FUNC_CACHE_PREFER_NONE, CU_FUNC_CACHE_PREFER_SHARED,
                                              CU_FUNC_CACHE_PREFER_L1, CU_FUNC_CACHE_PREFER_EQUAL};
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    driver.check(driver.api().cuKernelSetCacheConfig(
                     kernel.native, native[static_cast<std::size_t>(preference)], device.ordinal()),
                 "setting how a kernel's on-chip memory is divided");
}

}  // namespace bascule
