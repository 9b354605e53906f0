// Functions whose signature changed over CUDA's versions, as older clients know them. What changed its name
// alone (cuMemAlloc, cuMemAlloc_v2) is an alias that the build makes.
#pragma once

#include <cuda.h>

extern "C" {
CUresult CUDAAPI cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device);
CUresult CUDAAPI cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* affinity, int count,
                                unsigned int flags, CUdevice device);
}

namespace emulated::driver {

/// cuGetProcAddress before CUDA 12: without a result to fill. <cuda.h> renames the name itself away.
CUresult CUDAAPI get_proc_address_v1(const char* symbol, void** function, int version, cuuint64_t flags);

}  // namespace emulated::driver
