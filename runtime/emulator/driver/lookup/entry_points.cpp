// cuGetProcAddress: selects the version of a function that a client gets.
#include <cstdio>
#include <cstring>

#include <cuda.h>

#include "driver/call.hpp"

namespace emulated::driver {
namespace {

using PFN_cuDevicePrimaryCtxRelease_v7000 = PFN_cuDevicePrimaryCtxRelease_v11000;
using PFN_cuDevicePrimaryCtxReset_v7000 = PFN_cuDevicePrimaryCtxReset_v11000;
using PFN_cuDevicePrimaryCtxSetFlags_v7000 = PFN_cuDevicePrimaryCtxSetFlags_v11000;
// Since CUDA 12, <cuda.h> calls cuGraphInstantiateWithFlags by the name cuGraphInstantiate.
using PFN_cuGraphInstantiate_v12000 = PFN_cuGraphInstantiateWithFlags_v11040;

#define OLDER(name, version, pointer) \
    EntryPoint::of<PFN_##name##_v##version>(#name, version, &pointer, &pointer)

// Older versions that differ only in name, and second names. The definitions of the functions make the other entries.
const EntryPoint older_names[] = {
    OLDER(cuDeviceGetUuid, 9020, cuDeviceGetUuid),
    OLDER(cuDevicePrimaryCtxRelease, 7000, cuDevicePrimaryCtxRelease),
    OLDER(cuDevicePrimaryCtxReset, 7000, cuDevicePrimaryCtxReset),
    OLDER(cuDevicePrimaryCtxSetFlags, 7000, cuDevicePrimaryCtxSetFlags),
    OLDER(cuEventElapsedTime, 2000, cuEventElapsedTime),
    OLDER(cuGraphInstantiate, 12000, cuGraphInstantiateWithFlags),
};

#undef OLDER

}  // namespace

EMULATED_API(cuGetExportTable, 3000, const void** table, const CUuuid* id) {
    // The CUDA runtime uses this table to verify that the driver is NVIDIA's. Other clients work without the tables
    // that they ask for, such as NVRTC 13.5, which asks any libcuda.so.1 for one.
    constexpr unsigned char of_runtime[] = {0x6b, 0xd5, 0xfb, 0x6c};
    static std::atomic<bool> said{false};
    const bool asked_by_runtime = id != nullptr && std::memcmp(id->bytes, of_runtime, sizeof of_runtime) == 0;
    if (asked_by_runtime && !said.exchange(true)) {
        std::fputs(
            "bascule: this program uses the CUDA runtime (as CuPy, PyTorch, JAX, RMM and Warp do), which needs "
            "NVIDIA's own driver. The emulated device runs programs on the driver API, such as numba-cuda, "
            "cuda.core and PyCUDA; bascule.to_device takes host arrays. Otherwise use a GPU.\n",
            stderr);
    }
    if (table != nullptr) *table = nullptr;
    throw Failed{CUDA_ERROR_STUB_LIBRARY};
}

/// Returns the newest version that is neither newer than requested nor newer than the driver. A named driver refuses
/// requests below a function's first version; without a named driver such requests get the oldest version.
EMULATED_API(cuGetProcAddress, 12000, const char* symbol, void** function, int version, cuuint64_t flags,
             CUdriverProcAddressQueryResult* result) {
    require(symbol != nullptr && function != nullptr);
    require(flags <= CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    *function = nullptr;
    // <cuda.h>: a version newer than the driver's is refused. Without a named driver, every version is accepted.
    const int named = Process::get().environment().named_driver;
    require(named == 0 || version <= named);
    const EntryPoint* best = nullptr;
    const EntryPoint* oldest = nullptr;
    for (const EntryPoint* entry = EntryPoint::first; entry != nullptr; entry = entry->next) {
        if (entry->name != symbol || (named != 0 && entry->version > named)) continue;
        if (oldest == nullptr || entry->version < oldest->version) oldest = entry;
        if (entry->version <= version && (best == nullptr || entry->version > best->version)) best = entry;
    }
    if (named == 0 && best == nullptr) best = oldest;
    const bool per_thread = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (best != nullptr) *function = reinterpret_cast<void*>(per_thread ? best->for_threads : best->function);
    if (result != nullptr) {
        *result = best != nullptr     ? CU_GET_PROC_ADDRESS_SUCCESS
                  : oldest != nullptr ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                      : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    }
    // Callers that pass `result` read the outcome there; others get it as the error code.
    require(best != nullptr || result != nullptr, CUDA_ERROR_NOT_FOUND);
}

}  // namespace emulated::driver
