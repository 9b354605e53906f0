#include <algorithm>

#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/kernels/occupancy.hpp>
#include <bascule/runtime/streams/relaxed_capture.hpp>

namespace bascule {
namespace {

/// In the current context.
CUfunction function_of(const LoadedKernel& kernel, const char* doing) {
    const Driver& driver = Driver::get();
    CUfunction function = nullptr;
    driver.check(driver.api().cuKernelGetFunction(&function, kernel.native), doing);
    return function;
}

}  // namespace

KernelAttributes attributes_of(const LoadedKernel& kernel, Device device) {
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    const RelaxedCapture relaxed;  // a question: captures of others are not affected
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
    return attributes;
}

Occupancy occupancy_of(const LoadedKernel& kernel, Device device, std::uint32_t threads,
                       std::uint32_t shared_bytes) {
    check({.grid = {}, .block = {threads}, .shared_bytes = shared_bytes}, kernel.limits);
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    const RelaxedCapture relaxed;  // a question: captures of others are not affected
    const char* const doing = "asking how many blocks run at once";
    CUfunction function = function_of(kernel, doing);
    int blocks = 0;
    driver.check(driver.api().cuOccupancyMaxActiveBlocksPerMultiprocessor(
                     &blocks, function, static_cast<int>(threads), shared_bytes),
                 doing);
    const int warp = driver.attribute_of(device.ordinal(), CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    const int most =
        driver.attribute_of(device.ordinal(), CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / warp;
    const int each = (static_cast<int>(threads) + warp - 1) / warp;
    return {static_cast<std::uint32_t>(blocks), static_cast<double>(blocks * each) / most};
}

std::uint32_t best_block_size(const LoadedKernel& kernel, Device device, std::uint32_t shared_bytes) {
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    const RelaxedCapture relaxed;  // a question: captures of others are not affected
    const char* const doing = "choosing a block size";
    CUfunction function = function_of(kernel, doing);
    int grid = 0;
    int block = 0;
    driver.check(
        driver.api().cuOccupancyMaxPotentialBlockSize(&grid, &block, function, nullptr, shared_bytes, 0),
        doing);
    return static_cast<std::uint32_t>(std::max(block, 1));
}

}  // namespace bascule
