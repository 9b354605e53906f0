#include "driver/older_versions.hpp"

#include "driver/call.hpp"

namespace emulated::driver {

EMULATED_OLDER_API(get_proc_address_v1, const char* symbol, void** function, int version, cuuint64_t flags) {
    return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}

EMULATED_OLDER_API(capture_info_v1, CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
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

EMULATED_OLDER_API(prefetch_v1, CUdeviceptr address, std::size_t bytes, CUdevice device, CUstream stream) {
    return cuMemPrefetchAsync_v2(address, bytes, location_of(device), 0, stream);
}

EMULATED_OLDER_API(advise_v1, CUdeviceptr address, std::size_t bytes, CUmem_advise advice, CUdevice device) {
    return cuMemAdvise_v2(address, bytes, advice, location_of(device));
}

EMULATED_OLDER_API(cuStreamGetCaptureInfo_v2, CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                   CUgraph* graph, const CUgraphNode** dependencies, std::size_t* dependency_count) {
    return cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, nullptr, dependency_count);
}

EMULATED_OLDER_API(begin_capture_v1, CUstream stream) {
    return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

EMULATED_OLDER_API(graph_dependencies_v1, CUgraphNode node, CUgraphNode* dependencies, std::size_t* count) {
    return cuGraphNodeGetDependencies_v2(node, dependencies, nullptr, count);
}

EMULATED_OLDER_API(graph_dependents_v1, CUgraphNode node, CUgraphNode* dependents, std::size_t* count) {
    return cuGraphNodeGetDependentNodes_v2(node, dependents, nullptr, count);
}

EMULATED_OLDER_API(graph_edges_v1, CUgraph graph, CUgraphNode* from, CUgraphNode* to, std::size_t* count) {
    return cuGraphGetEdges_v2(graph, from, to, nullptr, count);
}

EMULATED_OLDER_API(graph_add_dependencies_v1, CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                   std::size_t count) {
    return cuGraphAddDependencies_v2(graph, from, to, nullptr, count);
}

EMULATED_OLDER_API(graph_remove_dependencies_v1, CUgraph graph, const CUgraphNode* from,
                   const CUgraphNode* to, std::size_t count) {
    return cuGraphRemoveDependencies_v2(graph, from, to, nullptr, count);
}

EMULATED_OLDER_API(graph_add_node_v1, CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                   std::size_t count, CUgraphNodeParams* values) {
    return cuGraphAddNode_v2(node, graph, before, nullptr, count, values);
}

EMULATED_OLDER_API(update_capture_dependencies_v1, CUstream stream, CUgraphNode* nodes, std::size_t count,
                   unsigned int flags) {
    return cuStreamUpdateCaptureDependencies_v2(stream, nodes, nullptr, count, flags);
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

}  // namespace emulated::driver
