// Launches and occupancy.
#include <algorithm>
#include <cstring>
#include <vector>

#include "driver/call.hpp"
#include "driver/code.hpp"
#include "driver/limits.hpp"
#include "machine/launch.hpp"
#include "report/report.hpp"

namespace limits = emulated::driver::limits;
using emulated::driver::Context;
using emulated::driver::context_of;
using emulated::driver::current_context;
using emulated::driver::KernelHandle;
using emulated::driver::Process;
using emulated::machine::Dim3;

namespace {

bool within(unsigned value, int most) noexcept { return value >= 1 && value <= static_cast<unsigned>(most); }

bool fits(const CUlaunchConfig& config, const KernelHandle& handle) noexcept {
    const std::uint64_t threads = std::uint64_t{config.blockDimX} * config.blockDimY * config.blockDimZ;
    return within(config.gridDimX, limits::grid_x) && within(config.gridDimY, limits::grid_y) &&
           within(config.gridDimZ, limits::grid_z) && within(config.blockDimX, limits::block_x) &&
           within(config.blockDimY, limits::block_y) && within(config.blockDimZ, limits::block_z) &&
           threads <= handle.kernel->max_threads &&
           config.sharedMemBytes <= static_cast<unsigned>(emulated::driver::max_dynamic_shared_bytes(handle));
}

/// The launch attributes that this device can honour.
bool supports(const CUlaunchConfig& config) noexcept {
    return std::all_of(config.attrs, config.attrs + config.numAttrs, [](const CUlaunchAttribute& attribute) {
        switch (attribute.id) {
            case CU_LAUNCH_ATTRIBUTE_IGNORE:
            case CU_LAUNCH_ATTRIBUTE_PRIORITY:
                return true;
            case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
                return attribute.value.cooperative == 0;
            default:
                return false;
        }
    });
}

/// The parameter buffer: one pointer a parameter, or the whole buffer in `extra`.
CUresult pack(std::vector<std::byte>& buffer, const emulated::program::Kernel& kernel, void** parameters,
              void** extra) {
    buffer.resize(kernel.parameter_bytes);
    if (kernel.parameters.empty()) return CUDA_SUCCESS;
    if (parameters != nullptr) {
        for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
            if (parameters[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
            std::memcpy(buffer.data() + kernel.parameters[i].offset, parameters[i],
                        kernel.parameters[i].bytes);
        }
        return CUDA_SUCCESS;
    }
    if (extra == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const void* bytes = nullptr;
    std::size_t size = 0;
    for (void** entry = extra; *entry != CU_LAUNCH_PARAM_END; entry += 2) {
        if (*entry == CU_LAUNCH_PARAM_BUFFER_POINTER) bytes = entry[1];
        if (*entry == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *static_cast<std::size_t*>(entry[1]);
    }
    if (bytes == nullptr || size < buffer.size()) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(buffer.data(), bytes, buffer.size());
    return CUDA_SUCCESS;
}

/// One launch, kept until it runs.
struct Job {
    const emulated::program::Kernel* kernel;
    std::shared_ptr<const emulated::program::Module> module;  // keeps the kernel
    Context* context;
    const std::vector<emulated::memory::DeviceAddress>* globals;
    Dim3 grid, block;
    std::uint32_t shared_bytes;
    std::vector<std::byte> parameters;

    /// After a fault nothing more runs in the context, as on a GPU.
    void operator()() const {
        if (context->error.load() != CUDA_SUCCESS) return;
        Process& process = Process::get();
        emulated::machine::LaunchRequest request;
        request.kernel = kernel;
        request.grid = grid;
        request.block = block;
        request.dynamic_shared_bytes = shared_bytes;
        request.parameters = parameters.data();
        request.globals = globals->data();
        request.memory = &process.heap();
        request.workers = process.workers();
        if (const auto fault = emulated::machine::launch(request)) {
            process.set_report(emulated::report::describe(*fault, process.heap()));
            context->error.store(static_cast<CUresult>(emulated::report::driver_code(fault->kind)));
        }
    }
};

CUresult launch(const CUlaunchConfig& config, CUfunction function, void** parameters, void** extra) {
    const CUresult state = emulated::driver::ready();
    if (state != CUDA_SUCCESS) return state;
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const auto& handle = *reinterpret_cast<const KernelHandle*>(function);
    if (!fits(config, handle)) return CUDA_ERROR_INVALID_VALUE;
    if (!supports(config)) return CUDA_ERROR_NOT_SUPPORTED;
    Context* context = context_of(config.hStream);
    auto* stream = context == nullptr ? nullptr : emulated::driver::find_stream(*context, config.hStream);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (handle.context != nullptr && handle.context != context) return CUDA_ERROR_INVALID_HANDLE;

    emulated::driver::trace(BASCULE_EMULATED_LAUNCH, config.hStream, nullptr, 0, handle.kernel->name);
    if (!Process::get().executes()) return CUDA_SUCCESS;

    Job job{handle.kernel,
            handle.library->module,
            context,
            &emulated::driver::globals_of(*handle.library, *context),
            {config.gridDimX, config.gridDimY, config.gridDimZ},
            {config.blockDimX, config.blockDimY, config.blockDimZ},
            config.sharedMemBytes,
            {}};
    const CUresult packed = pack(job.parameters, *handle.kernel, parameters, extra);
    if (packed != CUDA_SUCCESS) return packed;
    context->graph.submit(*stream, std::move(job));
    return CUDA_SUCCESS;
}

/// Blocks of this size that one multiprocessor holds at once.
int resident_blocks(const KernelHandle& handle, int block_size, std::size_t dynamic_shared_bytes) noexcept {
    const int warps = (block_size + 31) / 32;
    const int by_threads = limits::threads_per_multiprocessor / (warps * 32);
    const int registers = std::max(1, static_cast<int>(handle.kernel->registers + 7) / 8 * 8);
    const int by_registers = limits::registers_per_multiprocessor / (registers * 32 * warps);
    const std::size_t shared = handle.kernel->static_shared_bytes + dynamic_shared_bytes + 1024;
    const int by_shared =
        static_cast<int>(static_cast<std::size_t>(limits::shared_per_multiprocessor) / shared);
    return std::min({limits::blocks_per_multiprocessor, by_threads, by_registers, by_shared});
}

}  // namespace

EMULATED_API cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                              void** extra) {
    EMULATED_COUNT("cuLaunchKernelEx");
    if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return launch(*config, function, parameters, extra);
}

EMULATED_API cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                            unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                            unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                            void** parameters, void** extra) {
    EMULATED_COUNT("cuLaunchKernel");
    CUlaunchConfig config = {};
    config.gridDimX = grid_x;
    config.gridDimY = grid_y;
    config.gridDimZ = grid_z;
    config.blockDimX = block_x;
    config.blockDimY = block_y;
    config.blockDimZ = block_z;
    config.sharedMemBytes = shared_bytes;
    config.hStream = stream;
    return launch(config, function, parameters, extra);
}

EMULATED_API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int block_size,
                                                         std::size_t dynamic_shared_bytes) {
    EMULATED_COUNT("cuOccupancyMaxActiveBlocksPerMultiprocessor");
    EMULATED_NEEDS_CONTEXT();
    if (block_size < 1 || block_size > limits::threads_per_block) return CUDA_ERROR_INVALID_VALUE;
    *blocks =
        resident_blocks(*reinterpret_cast<const KernelHandle*>(function), block_size, dynamic_shared_bytes);
    return CUDA_SUCCESS;
}

/// The largest block that keeps the most threads resident.
EMULATED_API cuOccupancyMaxPotentialBlockSize(int* grid_size, int* block_size, CUfunction function,
                                              CUoccupancyB2DSize shared_bytes_of,
                                              std::size_t dynamic_shared_bytes, int block_limit) {
    EMULATED_COUNT("cuOccupancyMaxPotentialBlockSize");
    EMULATED_NEEDS_CONTEXT();
    const auto& handle = *reinterpret_cast<const KernelHandle*>(function);
    int largest = static_cast<int>(handle.kernel->max_threads);
    if (block_limit > 0) largest = std::min(largest, block_limit);
    int most_threads = 0;
    for (int size = (largest + 31) / 32 * 32; size > 0; size -= 32) {
        const int block = std::min(size, largest);
        const std::size_t shared = shared_bytes_of == nullptr ? dynamic_shared_bytes : shared_bytes_of(block);
        const int blocks = resident_blocks(handle, block, shared);
        if (blocks * block > most_threads) {
            most_threads = blocks * block;
            *block_size = block;
            *grid_size = blocks * limits::multiprocessors;
        }
    }
    return most_threads > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
