#include "driver/older_versions.hpp"

#include "driver/call.hpp"

CUresult CUDAAPI emulated::driver::get_proc_address_v1(const char* symbol, void** function, int version,
                                                       cuuint64_t flags) {
    return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}

EMULATED_API cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
    return cuCtxCreate_v4(context, nullptr, flags, device);
}

EMULATED_API cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* affinity, int count, unsigned int flags,
                            CUdevice device) {
    CUctxCreateParams parameters = {};
    parameters.execAffinityParams = count == 0 ? nullptr : affinity;
    parameters.numExecAffinityParams = count;
    return cuCtxCreate_v4(context, &parameters, flags, device);
}

#undef cuCtxCreate
#undef cuGetProcAddress

EMULATED_API cuCtxCreate(CUcontext* context, unsigned int flags, CUdevice device) {
    return cuCtxCreate_v2(context, flags, device);
}

EMULATED_API cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
    return emulated::driver::get_proc_address_v1(symbol, function, version, flags);
}
