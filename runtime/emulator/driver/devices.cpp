// Devices: the attributes of the architecture that BASCULE_EMULATED_ARCH names, as far as it is emulated.
#include <cstdio>
#include <cstring>

#include "driver/call.hpp"
#include "driver/device_limits.hpp"

// Declared in <cudaProfiler.h>, which the pip packages lack.
extern "C" {
CUresult CUDAAPI cuProfilerStart();
CUresult CUDAAPI cuProfilerStop();
}
using PFN_cuProfilerStart_v4000 = CUresult(CUDAAPI*)();
using PFN_cuProfilerStop_v4000 = CUresult(CUDAAPI*)();

namespace emulated::driver {
namespace {

/// The attributes that drivers newer than 12.0 added. Source: <cuda.h> of CUDA 12.0 to 13.5. Those of
/// 13.1 and newer are numbers, because older versions of <cuda.h> lack their names; all of them are 0 here.
constexpr struct AddedAttribute {
    int which;
    int driver;
} added_attributes[] = {
    {CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 12010},
    {CU_DEVICE_ATTRIBUTE_NUMA_CONFIG, 12020},
    {CU_DEVICE_ATTRIBUTE_NUMA_ID, 12020},
    {CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, 12020},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 12030},
    {CU_DEVICE_ATTRIBUTE_MPS_ENABLED, 12030},
    {CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED, 12050},
    {CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK, 12080},
    {CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH, 12080},
    {CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID, 12080},
    {CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID, 12080},
    {CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED, 12080},
    {CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED, 12090},
    {CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 12090},
    {CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED, 12090},
    {CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED, 13000},
    {CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 13000},
    {CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED, 13000},
    {CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED, 13000},
    {148, 13010},
    {151, 13030},
    {152, 13030},
    {153, 13030},
    {154, 13030},
    {155, 13030},
    {156, 13030},
    {149, 13040},
    {150, 13040},
    {157, 13040},
    {158, 13040},
    {161, 13040},
    {159, 13050},
    {160, 13050},
};

/// Whether the driver that this device imitates answers the attribute.
bool is_known(CUdevice_attribute which) noexcept {
    constexpr int first = CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, last = 161;
    if (which < first || which > last) return false;
    const auto* const row = find_row(added_attributes, &AddedAttribute::which, which);
    return row == nullptr || Process::get().environment().driver() >= row->driver;
}

/// Attributes that do not depend on the environment. A known attribute that has no row and is not in `attribute` is 0:
/// what it asks for is not emulated.
constexpr struct FixedAttribute {
    CUdevice_attribute which;
    int value;
} fixed_attributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, limits::threads_per_block},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, limits::block_x},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, limits::block_y},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, limits::block_z},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, limits::grid_x},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, limits::grid_y},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, limits::grid_z},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, limits::shared_per_block},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, limits::registers_per_multiprocessor},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, limits::registers_per_multiprocessor},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1'000'000},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1'000'000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 64},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 4 << 20},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, limits::multiprocessors},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_TEX2D_GATHER, 1},
    {CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT, 1},
    {CU_DEVICE_ATTRIBUTE_NUMA_ID, -1},
    {CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, -1},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 1},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, limits::texture_alignment},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, limits::texture_pitch_alignment},
    {CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, limits::texture_alignment},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH, limits::array_1d_width},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, limits::texture_linear_width},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, limits::array_mipmapped},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, limits::array_mipmapped},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT, limits::array_mipmapped},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH, limits::array_1d_layered_width},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS, limits::array_layers},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, limits::array_2d_width},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT, limits::array_2d_height},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH, limits::texture_pitched_width},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, limits::texture_pitched_height},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH, limits::texture_pitched_pitch},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH, limits::array_2d_small},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, limits::array_2d_small},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS, limits::array_layers},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH, limits::array_2d_small},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT, limits::array_2d_small},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH, limits::array_3d},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT, limits::array_3d},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH, limits::array_3d},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH, limits::array_2d_small},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, limits::array_2d_small},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS, limits::array_cube_layers},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH, limits::surface_1d_width},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH, limits::array_1d_layered_width},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS, limits::array_layers},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH, limits::array_2d_width},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT, limits::array_2d_height},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH, limits::array_2d_small},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT, limits::array_2d_small},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS, limits::array_layers},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH, limits::array_3d},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT, limits::array_3d},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH, limits::array_3d},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH, limits::array_2d_small},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH, limits::array_2d_small},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS, limits::array_cube_layers},
};

/// Attributes that differ between architectures.
constexpr struct ArchitectureAttribute {
    CUdevice_attribute which;
    int limits::Architecture::*value;
} architecture_attributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &limits::Architecture::shared_per_block_optin},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
     &limits::Architecture::shared_per_multiprocessor},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, &limits::Architecture::shared_reserved_per_block},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &limits::Architecture::threads_per_multiprocessor},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, &limits::Architecture::blocks_per_multiprocessor},
    {CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, &limits::Architecture::single_to_double},
};

int attribute(CUdevice_attribute which, CUdevice device) noexcept {
    if (const auto* row = find_row(fixed_attributes, &FixedAttribute::which, which)) return row->value;
    if (const auto* row = find_row(architecture_attributes, &ArchitectureAttribute::which, which))
        return architecture_limits().*row->value;
    const Environment& environment = Process::get().environment();
    if (which == CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH ||
        which == CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED)
        return architecture_limits().clusters ? 1 : 0;
    if (which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) return environment.architecture / 10;
    if (which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) return environment.architecture % 10;
    if (which == CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) return environment.concurrent_managed ? 1 : 0;
    if (which == CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS) return environment.pageable ? 1 : 0;
    if (which == CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED ||
        which == CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED ||
        which == CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED)
        return environment.has_memory_pools ? 1 : 0;
    if (which == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID || which == CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID)
        return device;
    if (which == CU_DEVICE_ATTRIBUTE_COMPUTE_MODE)
        return Process::get().is_busy(device) ? CU_COMPUTEMODE_EXCLUSIVE_PROCESS : CU_COMPUTEMODE_DEFAULT;
    return 0;
}

}  // namespace

EMULATED_API(cuInit, 2000, unsigned int flags) {
    require(flags == 0);
    check(Process::get().initialise());
}

EMULATED_API(cuDriverGetVersion, 2020, int* version) {
    return answer(version, Process::get().environment().driver());
}

EMULATED_API(cuDeviceGet, 2000, CUdevice* device, int ordinal) {
    check(device_state(ordinal));
    return answer(device, ordinal);
}

EMULATED_DRIVER_API(cuDeviceGetCount, 2000, int* count) { return answer(count, Process::get().devices()); }

EMULATED_API(cuDeviceGetName, 2000, char* name, int length, CUdevice device) {
    check(device_state(device));
    std::snprintf(name, static_cast<std::size_t>(length), "Bascule emulated device");
}

EMULATED_API(cuDeviceGetUuid, 11040, CUuuid* uuid, CUdevice device) {
    check(device_state(device));
    std::memset(uuid->bytes, 0, sizeof uuid->bytes);
    std::memcpy(uuid->bytes, "bascule", 7);
    uuid->bytes[15] = static_cast<char>(device);
}

EMULATED_API(cuDeviceTotalMem, 3020, std::size_t* bytes, CUdevice device) {
    check(device_state(device));
    return answer(bytes, Process::get().heap().capacity(device));
}

EMULATED_API(cuDeviceGetAttribute, 2000, int* value, CUdevice_attribute which, CUdevice device) {
    check(device_state(device));
    require(is_known(which));
    return answer(value, attribute(which, device));
}

EMULATED_API(cuDeviceGetPCIBusId, 4010, char* text, int length, CUdevice device) {
    check(device_state(device));
    require(text != nullptr && length >= 13);
    std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0", static_cast<unsigned>(device));
}

EMULATED_DRIVER_API(cuDeviceGetByPCIBusId, 4010, CUdevice* device, const char* text) {
    require(device != nullptr && text != nullptr);
    unsigned domain = 0;
    unsigned bus = 0;
    const bool read = std::sscanf(text, "%x:%x:00.0", &domain, &bus) == 2 && domain == 0;
    require(read && Process::get().is_device(static_cast<int>(bus)), CUDA_ERROR_INVALID_DEVICE);
    return answer(device, static_cast<int>(bus));
}

// There is no profiler.
EMULATED_API(cuProfilerStart, 4000) {}
EMULATED_API(cuProfilerStop, 4000) {}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // deprecated in <cuda.h>

EMULATED_API(cuDeviceComputeCapability, 2000, int* major, int* minor, CUdevice device) {
    check(device_state(device));
    answer(major, attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
    return answer(minor, attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
}

EMULATED_API(cuDeviceGetProperties, 2000, CUdevprop* properties, CUdevice device) {
    check(device_state(device));
    require(properties != nullptr);
    const auto ask = [&](CUdevice_attribute which) { return attribute(which, device); };
    *properties = {ask(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
                   {ask(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X), ask(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
                    ask(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)},
                   {ask(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X), ask(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
                    ask(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)},
                   ask(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
                   ask(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY),
                   ask(CU_DEVICE_ATTRIBUTE_WARP_SIZE),
                   ask(CU_DEVICE_ATTRIBUTE_MAX_PITCH),
                   ask(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
                   ask(CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
                   ask(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT)};
}

#pragma GCC diagnostic pop

}  // namespace emulated::driver
