// cuGetProcAddress: one row an exported function.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "driver/call.hpp"

namespace {

struct EntryPoint {
    std::string_view name;
    int version;  ///< the CUDA version whose ABI this is
    void* function;
};

#define ROW(name, version) \
    EntryPoint { #name, version, reinterpret_cast < void*>(&name) }

// The second column is the version that <cudaTypedefs.h> gives the ABI that is implemented.
const EntryPoint entry_points[] = {
    ROW(cuInit, 2000),
    ROW(cuDriverGetVersion, 2020),
    ROW(cuGetErrorName, 6000),
    ROW(cuGetErrorString, 6000),
    ROW(cuDeviceGet, 2000),
    ROW(cuDeviceGetCount, 2000),
    ROW(cuDeviceGetName, 2000),
    ROW(cuDeviceGetUuid, 11040),
    ROW(cuDeviceTotalMem, 3020),
    ROW(cuDeviceGetAttribute, 2000),
    ROW(cuDevicePrimaryCtxRetain, 7000),
    ROW(cuDevicePrimaryCtxRelease, 11000),
    ROW(cuDevicePrimaryCtxReset, 11000),
    ROW(cuDevicePrimaryCtxGetState, 7000),
    ROW(cuCtxGetCurrent, 4000),
    ROW(cuCtxSetCurrent, 4000),
    ROW(cuCtxPushCurrent, 4000),
    ROW(cuCtxPopCurrent, 4000),
    ROW(cuCtxGetDevice, 2000),
    ROW(cuCtxGetFlags, 7000),
    ROW(cuCtxGetApiVersion, 3020),
    ROW(cuCtxSynchronize, 2000),
    ROW(cuCtxGetStreamPriorityRange, 5050),
    ROW(cuLibraryLoadData, 12000),
    ROW(cuLibraryUnload, 12000),
    ROW(cuLibraryGetKernel, 12000),
    ROW(cuLibraryGetKernelCount, 12040),
    ROW(cuLibraryGetGlobal, 12000),
    ROW(cuKernelGetFunction, 12000),
    ROW(cuKernelGetAttribute, 12000),
    ROW(cuKernelSetAttribute, 12000),
    ROW(cuKernelGetParamInfo, 12040),
    ROW(cuKernelGetName, 12030),
    ROW(cuModuleLoadData, 2000),
    ROW(cuModuleLoadDataEx, 2010),
    ROW(cuModuleUnload, 2000),
    ROW(cuModuleGetFunction, 2000),
    ROW(cuModuleGetGlobal, 3020),
    ROW(cuFuncGetAttribute, 2020),
    ROW(cuFuncSetAttribute, 9000),
    ROW(cuFuncGetParamInfo, 12040),
    ROW(cuLaunchKernel, 4000),
    ROW(cuLaunchKernelEx, 11060),
    ROW(cuLaunchHostFunc, 10000),
    ROW(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050),
    ROW(cuOccupancyMaxPotentialBlockSize, 6050),
    ROW(cuMemAlloc, 3020),
    ROW(cuMemFree, 3020),
    ROW(cuMemAllocManaged, 6000),
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
    ROW(cuMemcpy, 4000),
    ROW(cuMemcpyAsync, 4000),
    ROW(cuMemcpyHtoD, 3020),
    ROW(cuMemcpyHtoDAsync, 3020),
    ROW(cuMemcpyDtoH, 3020),
    ROW(cuMemcpyDtoHAsync, 3020),
    ROW(cuMemcpyDtoD, 3020),
    ROW(cuMemcpyDtoDAsync, 3020),
    ROW(cuMemsetD8, 3020),
    ROW(cuMemsetD8Async, 3020),
    ROW(cuMemsetD16Async, 3020),
    ROW(cuMemsetD32Async, 3020),
    ROW(cuStreamCreate, 2000),
    ROW(cuStreamCreateWithPriority, 5050),
    ROW(cuStreamDestroy, 4000),
    ROW(cuStreamSynchronize, 2000),
    ROW(cuStreamQuery, 2000),
    ROW(cuStreamWaitEvent, 3020),
    ROW(cuStreamGetCtx, 9020),
    ROW(cuStreamGetFlags, 5050),
    ROW(cuStreamGetPriority, 5050),
    ROW(cuStreamGetId, 12000),
    ROW(cuStreamIsCapturing, 10000),
    ROW(cuThreadExchangeStreamCaptureMode, 10010),
    ROW(cuEventCreate, 2000),
    ROW(cuEventDestroy, 4000),
    ROW(cuEventRecord, 2000),
    ROW(cuEventQuery, 2000),
    ROW(cuEventSynchronize, 2000),
    ROW(cuEventElapsedTime, 2000),
    ROW(cuGetExportTable, 3000),
    ROW(cuGetProcAddress, 11030),
};

}  // namespace

EMULATED_API cuGetExportTable(const void** table, const CUuuid*) {
    EMULATED_COUNT("cuGetExportTable");
    static std::atomic<bool> said{false};
    if (!said.exchange(true)) {
        std::fputs(
            "bascule: a program asked the emulated device for the CUDA runtime's private tables; programs on "
            "the CUDA runtime "
            "API cannot use it\n",
            stderr);
    }
    if (table != nullptr) *table = nullptr;
    return CUDA_ERROR_STUB_LIBRARY;
}

/// The highest version not above the requested one; below the first version the oldest. Unknown names are not
/// found.
EMULATED_API cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t,
                              CUdriverProcAddressQueryResult* result) {
    EMULATED_COUNT("cuGetProcAddress");
    if (symbol == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const EntryPoint* best = nullptr;
    for (const EntryPoint& entry : entry_points) {
        if (entry.name != symbol) continue;
        const bool newer = best == nullptr || (entry.version <= version && entry.version > best->version);
        if (newer) best = &entry;
    }
    *function = best == nullptr ? nullptr : best->function;
    if (result != nullptr) {
        *result = best == nullptr ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND : CU_GET_PROC_ADDRESS_SUCCESS;
    }
    return best == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}
