#include "driver/older_versions.hpp"

#include "driver/call.hpp"

namespace emulated::driver {
CUresult CUDAAPI get_proc_address_v1(const char* symbol, void** function, int version, cuuint64_t flags) {
    return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}

CUresult CUDAAPI capture_info_v1(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
    return cuStreamGetCaptureInfo_v3(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}

namespace {

CUmemLocation location_of(CUdevice device) noexcept {
    CUmemLocation location = {};
    location.type = device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = device == CU_DEVICE_CPU ? 0 : device;
    return location;
}

}  // namespace

CUresult CUDAAPI prefetch_v1(CUdeviceptr address, std::size_t bytes, CUdevice device, CUstream stream) {
    return cuMemPrefetchAsync_v2(address, bytes, location_of(device), 0, stream);
}

CUresult CUDAAPI advise_v1(CUdeviceptr address, std::size_t bytes, CUmem_advise advice, CUdevice device) {
    return cuMemAdvise_v2(address, bytes, advice, location_of(device));
}

EMULATED_OLDER_API(cuStreamGetCaptureInfo_v2, CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                   CUgraph* graph, const CUgraphNode** dependencies, std::size_t* dependency_count) {
    return cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, nullptr, dependency_count);
}

CUresult CUDAAPI begin_capture_v1(CUstream stream) {
    return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult CUDAAPI graph_dependencies_v1(CUgraphNode node, CUgraphNode* dependencies, std::size_t* count) {
    return cuGraphNodeGetDependencies_v2(node, dependencies, nullptr, count);
}

EMULATED_OLDER_API(cuGraphInstantiate_v2, CUgraphExec* exec, CUgraph graph, CUgraphNode* error, char* log,
                   std::size_t log_bytes) {
    return graph_instantiate_v1(exec, graph, error, log, log_bytes);
}

EMULATED_OLDER_API(cuCtxCreate_v2, CUcontext* context, unsigned int flags, CUdevice device) {
    return cuCtxCreate_v4(context, nullptr, flags, device);
}

EMULATED_OLDER_API(cuCtxCreate_v3, CUcontext* context, CUexecAffinityParam* affinity, int count,
                   unsigned int flags, CUdevice device) {
    CUctxCreateParams parameters = {};
    parameters.execAffinityParams = count == 0 ? nullptr : affinity;
    parameters.numExecAffinityParams = count;
    return cuCtxCreate_v4(context, &parameters, flags, device);
}

#undef cuCtxCreate
#undef cuGetProcAddress
#undef cuGraphExecUpdate
#undef cuGraphInstantiate
#undef cuGraphNodeGetDependencies
#undef cuMemAdvise
#undef cuMemPrefetchAsync
#undef cuStreamBeginCapture
#undef cuStreamGetCaptureInfo

EMULATED_OLDER_API(cuCtxCreate, CUcontext* context, unsigned int flags, CUdevice device) {
    return cuCtxCreate_v2(context, flags, device);
}

EMULATED_OLDER_API(cuGetProcAddress, const char* symbol, void** function, int version, cuuint64_t flags) {
    return get_proc_address_v1(symbol, function, version, flags);
}

EMULATED_OLDER_API(cuStreamGetCaptureInfo, CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
    return capture_info_v1(stream, status, id);
}

EMULATED_OLDER_API(cuStreamBeginCapture, CUstream stream) { return begin_capture_v1(stream); }

EMULATED_OLDER_API(cuGraphInstantiate, CUgraphExec* exec, CUgraph graph, CUgraphNode* error, char* log,
                   std::size_t log_bytes) {
    return graph_instantiate_v1(exec, graph, error, log, log_bytes);
}

EMULATED_OLDER_API(cuGraphNodeGetDependencies, CUgraphNode node, CUgraphNode* dependencies,
                   std::size_t* count) {
    return graph_dependencies_v1(node, dependencies, count);
}

EMULATED_OLDER_API(cuGraphExecUpdate, CUgraphExec exec, CUgraph graph, CUgraphNode* error,
                   CUgraphExecUpdateResult* result) {
    return graph_exec_update_v1(exec, graph, error, result);
}

EMULATED_OLDER_API(cuMemPrefetchAsync, CUdeviceptr address, std::size_t bytes, CUdevice device,
                   CUstream stream) {
    return prefetch_v1(address, bytes, device, stream);
}

EMULATED_OLDER_API(cuMemAdvise, CUdeviceptr address, std::size_t bytes, CUmem_advise advice,
                   CUdevice device) {
    return advise_v1(address, bytes, advice, device);
}

}  // namespace emulated::driver
