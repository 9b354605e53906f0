// cuGetProcAddress: one row an exported function.
#include <cstdio>
#include <cstring>
#include <string_view>
#include <type_traits>

#include <cuda.h>
#include <cudaTypedefs.h>

#include "driver/call.hpp"
#include "driver/older_versions.hpp"

namespace emulated::driver {
namespace {

using Function = void (*)();
using PFN_cuProfilerStart_v4000 = CUresult(CUDAAPI*)();
using PFN_cuProfilerStop_v4000 = CUresult(CUDAAPI*)();
// The name that <cuda.h> gives to cuGraphInstantiateWithFlags since CUDA 12.
// Older ones it declares only for programs that ask for them.
using PFN_cuStreamBeginCapture_v10000 = CUresult(CUDAAPI*)(CUstream);
using PFN_cuGraphInstantiate_v10000 = CUresult(CUDAAPI*)(CUgraphExec*, CUgraph, CUgraphNode*, char*, size_t);
using PFN_cuGraphInstantiate_v11000 = PFN_cuGraphInstantiate_v10000;
using PFN_cuDevicePrimaryCtxRelease_v7000 = PFN_cuDevicePrimaryCtxRelease_v11000;
using PFN_cuDevicePrimaryCtxReset_v7000 = PFN_cuDevicePrimaryCtxReset_v11000;
using PFN_cuDevicePrimaryCtxSetFlags_v7000 = PFN_cuDevicePrimaryCtxSetFlags_v11000;
using PFN_cuGraphInstantiate_v12000 = PFN_cuGraphInstantiateWithFlags_v11040;

/// The `_ptsz` or `_ptds` variant of a function: NULL means the calling thread's own stream while it runs.
template <auto Original>
struct PerThread;
template <class... Arguments, CUresult(CUDAAPI* Original)(Arguments...)>
struct PerThread<Original> {
    static CUresult CUDAAPI call(Arguments... arguments) {
        const PerThreadDefault scope;
        return Original(arguments...);
    }
};

struct EntryPoint {
    std::string_view name;
    int version;  ///< the CUDA version whose ABI this is, as <cudaTypedefs.h> counts
    Function function;
    Function per_thread;  ///< the same function where streams do not matter
};

template <class Type, auto Pointer>
constexpr auto checked() {
    static_assert(std::is_same_v<Type, decltype(Pointer)>, "not the signature of this version");
    return Pointer;
}

// Not nested: <cuda.h> renames some of the functions, and the rows name them without their suffix.
// clang-format off
#define ROW(name, version) \
    EntryPoint{#name, version, reinterpret_cast<Function>(checked<PFN_##name##_v##version, &name>()), \
               reinterpret_cast<Function>(&name)}
#define OLDER(name, version, pointer) \
    EntryPoint{#name, version, reinterpret_cast<Function>(checked<PFN_##name##_v##version, &pointer>()), \
               reinterpret_cast<Function>(&pointer)}
#define PER_THREAD(name, version) \
    EntryPoint{#name, version, reinterpret_cast<Function>(checked<PFN_##name##_v##version, &name>()), \
               reinterpret_cast<Function>(&PerThread<&name>::call)}
// clang-format on

// Every function here is also exported under the name that <cuda.h> gives it (cuMemAlloc_v2).
const EntryPoint entry_points[] = {
    ROW(cuInit, 2000),
    ROW(cuDriverGetVersion, 2020),
    ROW(cuGetErrorName, 6000),
    ROW(cuGetErrorString, 6000),
    ROW(cuGetExportTable, 3000),

    ROW(cuDeviceGet, 2000),
    ROW(cuDeviceGetCount, 2000),
    ROW(cuDeviceGetName, 2000),
    OLDER(cuDeviceGetUuid, 9020, cuDeviceGetUuid),
    ROW(cuDeviceGetUuid, 11040),
    ROW(cuDeviceTotalMem, 3020),
    ROW(cuDeviceGetAttribute, 2000),
    ROW(cuDeviceGetPCIBusId, 4010),
    ROW(cuDeviceGetByPCIBusId, 4010),
    ROW(cuDeviceCanAccessPeer, 4000),
    ROW(cuDeviceGetP2PAttribute, 8000),
    ROW(cuDeviceGetDefaultMemPool, 11020),
    ROW(cuDeviceGetMemPool, 11020),
    ROW(cuDeviceSetMemPool, 11020),
    ROW(cuDevicePrimaryCtxRetain, 7000),
    OLDER(cuDevicePrimaryCtxRelease, 7000, cuDevicePrimaryCtxRelease),
    ROW(cuDevicePrimaryCtxRelease, 11000),
    OLDER(cuDevicePrimaryCtxReset, 7000, cuDevicePrimaryCtxReset),
    ROW(cuDevicePrimaryCtxReset, 11000),
    OLDER(cuDevicePrimaryCtxSetFlags, 7000, cuDevicePrimaryCtxSetFlags),
    ROW(cuDevicePrimaryCtxSetFlags, 11000),
    ROW(cuDevicePrimaryCtxGetState, 7000),

    OLDER(cuCtxCreate, 3020, cuCtxCreate_v2),
    OLDER(cuCtxCreate, 11040, cuCtxCreate_v3),
    ROW(cuCtxCreate, 12050),
    ROW(cuCtxDestroy, 4000),
    ROW(cuCtxGetCurrent, 4000),
    ROW(cuCtxSetCurrent, 4000),
    ROW(cuCtxPushCurrent, 4000),
    ROW(cuCtxPopCurrent, 4000),
    ROW(cuCtxGetDevice, 2000),
    ROW(cuCtxGetFlags, 7000),
    ROW(cuCtxSetFlags, 12010),
    ROW(cuCtxGetId, 12000),
    ROW(cuCtxGetApiVersion, 3020),
    ROW(cuCtxSynchronize, 2000),
    ROW(cuCtxGetStreamPriorityRange, 5050),
    ROW(cuCtxGetLimit, 3010),
    ROW(cuCtxSetLimit, 3010),
    ROW(cuCtxGetCacheConfig, 3020),
    ROW(cuCtxSetCacheConfig, 3020),
    ROW(cuCtxResetPersistingL2Cache, 11000),
    ROW(cuCtxEnablePeerAccess, 4000),
    ROW(cuCtxDisablePeerAccess, 4000),

    ROW(cuLibraryLoadData, 12000),
    ROW(cuLibraryLoadFromFile, 12000),
    ROW(cuLibraryUnload, 12000),
    ROW(cuLibraryGetKernel, 12000),
    ROW(cuLibraryGetKernelCount, 12040),
    ROW(cuLibraryEnumerateKernels, 12040),
    ROW(cuLibraryGetGlobal, 12000),
    ROW(cuKernelGetFunction, 12000),
    ROW(cuKernelGetLibrary, 12050),
    ROW(cuKernelGetAttribute, 12000),
    ROW(cuKernelSetAttribute, 12000),
    ROW(cuKernelSetCacheConfig, 12000),
    ROW(cuKernelGetParamInfo, 12040),
    ROW(cuKernelGetName, 12030),

    ROW(cuModuleLoad, 2000),
    ROW(cuModuleLoadData, 2000),
    ROW(cuModuleLoadDataEx, 2010),
    ROW(cuModuleLoadFatBinary, 2000),
    ROW(cuModuleUnload, 2000),
    ROW(cuModuleGetFunction, 2000),
    ROW(cuModuleGetFunctionCount, 12040),
    ROW(cuModuleEnumerateFunctions, 12040),
    ROW(cuModuleGetGlobal, 3020),
    ROW(cuModuleGetLoadingMode, 11070),
    ROW(cuFuncGetAttribute, 2020),
    ROW(cuFuncSetAttribute, 9000),
    ROW(cuFuncSetCacheConfig, 3000),
    ROW(cuFuncGetParamInfo, 12040),
    ROW(cuFuncGetName, 12030),
    ROW(cuFuncGetModule, 11000),
    ROW(cuFuncIsLoaded, 12040),
    ROW(cuFuncLoad, 12040),
    ROW(cuLinkCreate, 6050),
    ROW(cuLinkAddData, 6050),
    ROW(cuLinkAddFile, 6050),
    ROW(cuLinkComplete, 5050),
    ROW(cuLinkDestroy, 5050),

    PER_THREAD(cuLaunchKernel, 4000),
    PER_THREAD(cuLaunchKernelEx, 11060),
    PER_THREAD(cuLaunchCooperativeKernel, 9000),
    PER_THREAD(cuLaunchHostFunc, 10000),
    ROW(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050),
    ROW(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000),
    ROW(cuOccupancyMaxPotentialBlockSize, 6050),
    ROW(cuOccupancyMaxPotentialBlockSizeWithFlags, 7000),
    ROW(cuOccupancyAvailableDynamicSMemPerBlock, 10020),

    ROW(cuMemAlloc, 3020),
    ROW(cuMemAllocPitch, 3020),
    PER_THREAD(cuMemAllocAsync, 11020),
    PER_THREAD(cuMemAllocFromPoolAsync, 11020),
    ROW(cuMemPoolCreate, 11020),
    ROW(cuMemPoolDestroy, 11020),
    ROW(cuMemPoolSetAccess, 11020),
    ROW(cuMemPoolGetAccess, 11020),
    ROW(cuMemPoolTrimTo, 11020),
    ROW(cuMemPoolSetAttribute, 11020),
    ROW(cuMemPoolGetAttribute, 11020),
    ROW(cuMemAllocManaged, 6000),
    OLDER(cuMemPrefetchAsync, 8000, prefetch_v1),
    PER_THREAD(cuMemPrefetchAsync, 12020),
    OLDER(cuMemAdvise, 8000, advise_v1),
    ROW(cuMemAdvise, 12020),
    PER_THREAD(cuStreamAttachMemAsync, 6000),
    ROW(cuMemFree, 3020),
    PER_THREAD(cuMemFreeAsync, 11020),
    ROW(cuMemHostAlloc, 2020),
    ROW(cuMemAllocHost, 3020),
    ROW(cuMemFreeHost, 2000),
    ROW(cuMemHostRegister, 6050),
    ROW(cuMemHostUnregister, 4000),
    ROW(cuMemHostGetDevicePointer, 3020),
    ROW(cuMemGetInfo, 3020),
    ROW(cuMemGetAddressRange, 3020),
    ROW(cuPointerGetAttribute, 4000),
    ROW(cuPointerGetAttributes, 7000),
    ROW(cuPointerSetAttribute, 6000),

    PER_THREAD(cuMemcpy, 4000),
    PER_THREAD(cuMemcpyAsync, 4000),
    PER_THREAD(cuMemcpyHtoD, 3020),
    PER_THREAD(cuMemcpyHtoDAsync, 3020),
    PER_THREAD(cuMemcpyDtoH, 3020),
    PER_THREAD(cuMemcpyDtoHAsync, 3020),
    PER_THREAD(cuMemcpyDtoD, 3020),
    PER_THREAD(cuMemcpyDtoDAsync, 3020),
    PER_THREAD(cuMemcpyPeer, 4000),
    PER_THREAD(cuMemcpyPeerAsync, 4000),
    PER_THREAD(cuMemcpy2D, 3020),
    PER_THREAD(cuMemcpy2DUnaligned, 3020),
    PER_THREAD(cuMemcpy2DAsync, 3020),
    PER_THREAD(cuMemsetD2D8, 3020),
    PER_THREAD(cuMemsetD2D8Async, 3020),
    PER_THREAD(cuMemsetD2D16, 3020),
    PER_THREAD(cuMemsetD2D16Async, 3020),
    PER_THREAD(cuMemsetD2D32, 3020),
    PER_THREAD(cuMemsetD2D32Async, 3020),
    PER_THREAD(cuMemsetD8, 3020),
    PER_THREAD(cuMemsetD8Async, 3020),
    PER_THREAD(cuMemsetD16, 3020),
    PER_THREAD(cuMemsetD16Async, 3020),
    PER_THREAD(cuMemsetD32, 3020),
    PER_THREAD(cuMemsetD32Async, 3020),

    ROW(cuStreamCreate, 2000),
    ROW(cuStreamCreateWithPriority, 5050),
    ROW(cuStreamDestroy, 4000),
    PER_THREAD(cuStreamSynchronize, 2000),
    PER_THREAD(cuStreamQuery, 2000),
    PER_THREAD(cuStreamWaitEvent, 3020),
    PER_THREAD(cuStreamGetCtx, 9020),
    PER_THREAD(cuStreamGetDevice, 12080),
    PER_THREAD(cuStreamGetFlags, 5050),
    PER_THREAD(cuStreamGetPriority, 5050),
    PER_THREAD(cuStreamGetId, 12000),
    PER_THREAD(cuStreamIsCapturing, 10000),
    OLDER(cuStreamGetCaptureInfo, 10010, capture_info_v1),
    OLDER(cuStreamGetCaptureInfo, 11030, cuStreamGetCaptureInfo_v2),
    PER_THREAD(cuStreamGetCaptureInfo, 12030),
    OLDER(cuStreamBeginCapture, 10000, begin_capture_v1),
    PER_THREAD(cuStreamBeginCapture, 10010),
    PER_THREAD(cuStreamEndCapture, 10000),
    PER_THREAD(cuStreamAddCallback, 5000),
    ROW(cuThreadExchangeStreamCaptureMode, 10010),

    ROW(cuGraphCreate, 10000),
    ROW(cuGraphDestroy, 10000),
    ROW(cuGraphGetNodes, 10000),
    ROW(cuGraphGetRootNodes, 10000),
    OLDER(cuGraphNodeGetDependencies, 10000, graph_dependencies_v1),
    ROW(cuGraphNodeGetDependencies, 12030),
    ROW(cuGraphNodeGetType, 10000),
    OLDER(cuGraphInstantiate, 10000, graph_instantiate_v1),
    OLDER(cuGraphInstantiate, 11000, graph_instantiate_v1),
    ROW(cuGraphInstantiate, 12000),
    ROW(cuGraphInstantiateWithFlags, 11040),
    PER_THREAD(cuGraphInstantiateWithParams, 12000),
    OLDER(cuGraphExecUpdate, 10020, graph_exec_update_v1),
    ROW(cuGraphExecUpdate, 12000),
    ROW(cuGraphExecDestroy, 10000),
    PER_THREAD(cuGraphUpload, 11010),
    PER_THREAD(cuGraphLaunch, 10000),
    ROW(cuUserObjectCreate, 11030),
    ROW(cuUserObjectRetain, 11030),
    ROW(cuUserObjectRelease, 11030),
    ROW(cuGraphRetainUserObject, 11030),
    ROW(cuGraphReleaseUserObject, 11030),

    ROW(cuEventCreate, 2000),
    ROW(cuEventDestroy, 4000),
    PER_THREAD(cuEventRecord, 2000),
    PER_THREAD(cuEventRecordWithFlags, 11010),
    ROW(cuEventQuery, 2000),
    ROW(cuEventSynchronize, 2000),
    OLDER(cuEventElapsedTime, 2000, cuEventElapsedTime),
    ROW(cuEventElapsedTime, 12080),

    ROW(cuProfilerStart, 4000),  // there is no profiler
    ROW(cuProfilerStop, 4000),

    OLDER(cuGetProcAddress, 11030, get_proc_address_v1),
    ROW(cuGetProcAddress, 12000),
};

#undef PER_THREAD
#undef OLDER
#undef ROW

}  // namespace

EMULATED_API(cuGetExportTable, const void** table, const CUuuid* id) {
    // NVRTC asks any libcuda.so.1 for this one, and does without it (seen with 13.5).
    constexpr unsigned char of_nvrtc[] = {0xda, 0x91, 0x51, 0xd3, 0x3a, 0xe6, 0xcc, 0x41,
                                          0xa5, 0xc0, 0x4f, 0x26, 0xd5, 0x33, 0xe3, 0x28};
    static std::atomic<bool> said{false};
    const bool asked_by_nvrtc = id != nullptr && std::memcmp(id->bytes, of_nvrtc, sizeof of_nvrtc) == 0;
    if (!asked_by_nvrtc && !said.exchange(true)) {
        std::fputs(
            "bascule: a program asked the emulated device for the CUDA runtime's private tables; programs on "
            "the CUDA runtime API cannot use it\n",
            stderr);
    }
    if (table != nullptr) *table = nullptr;
    return CUDA_ERROR_STUB_LIBRARY;
}

/// The newest version that is above neither the requested one nor the driver's own. A named driver has none below a
/// function's first version; without a named one the oldest serves clients that ask with a version of their own.
EMULATED_API(cuGetProcAddress, const char* symbol, void** function, int version, cuuint64_t flags,
             CUdriverProcAddressQueryResult* result) {
    EMULATED_REQUIRE(symbol != nullptr && function != nullptr, CUDA_ERROR_INVALID_VALUE);
    EMULATED_REQUIRE(flags <= CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, CUDA_ERROR_INVALID_VALUE);
    *function = nullptr;
    // <cuda.h>: a version that is newer than the driver's is refused. Without a named driver, clients of any version
    // are served.
    const int named = Process::get().environment().named_driver;
    EMULATED_REQUIRE(named == 0 || version <= named, CUDA_ERROR_INVALID_VALUE);
    const EntryPoint* best = nullptr;
    bool known = false;
    for (const EntryPoint& entry : entry_points) {
        if (entry.name != symbol || (named != 0 && entry.version > named)) continue;
        known = true;
        const bool fits = entry.version <= version;
        if (best == nullptr ? fits || named == 0 : fits && entry.version > best->version) best = &entry;
    }
    const bool per_thread = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (best != nullptr) *function = reinterpret_cast<void*>(per_thread ? best->per_thread : best->function);
    if (result != nullptr) {
        *result = best != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
                  : known         ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                  : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    }
    // Callers that pass `result` read it there; for the others the code says it.
    return best != nullptr || result != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // namespace emulated::driver
