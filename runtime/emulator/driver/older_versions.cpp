// Older versions of functions whose signature has changed. Each only calls the current version.
#include "driver/call.hpp"

namespace emulated::driver {
namespace {

// <cudaTypedefs.h> defines this type only for the driver itself (__CUDA_API_VERSION_INTERNAL).
using PFN_cuStreamBeginCapture_v10000 = CUresult(CUDAAPI*)(CUstream);

/// Before CUDA 12.2 a location was a device's number or CU_DEVICE_CPU.
CUmemLocation location_of(CUdevice device) noexcept {
    CUmemLocation location = {};
    location.type = device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = device == CU_DEVICE_CPU ? 0 : device;
    return location;
}

}  // namespace

/// Before CUDA 12 it had no result parameter.
EMULATED_OLDER_API(cuGetProcAddress, 11030, const char* symbol, void** function, int version,
                   cuuint64_t flags) {
    check(cuGetProcAddress_v2(symbol, function, version, flags, nullptr));
}

/// Before CUDA 11.3 it did not return the graph.
EMULATED_OLDER_API(cuStreamGetCaptureInfo, 10010, CUstream stream, CUstreamCaptureStatus* status,
                   cuuint64_t* id) {
    check(cuStreamGetCaptureInfo_v3(stream, status, id, nullptr, nullptr, nullptr, nullptr));
}

EMULATED_OLDER_API_AS(cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo, 11030, CUstream stream,
                      CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                      const CUgraphNode** dependencies, std::size_t* dependency_count) {
    check(cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, nullptr, dependency_count));
}

/// Before CUDA 10.1 the mode was always global.
EMULATED_OLDER_API(cuStreamBeginCapture, 10000, CUstream stream) {
    check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

EMULATED_OLDER_API(cuMemPrefetchAsync, 8000, CUdeviceptr address, std::size_t bytes, CUdevice device,
                   CUstream stream) {
    check(cuMemPrefetchAsync_v2(address, bytes, location_of(device), 0, stream));
}

EMULATED_OLDER_API(cuMemAdvise, 8000, CUdeviceptr address, std::size_t bytes, CUmem_advise advice,
                   CUdevice device) {
    check(cuMemAdvise_v2(address, bytes, advice, location_of(device)));
}

// Graph functions without edge data

EMULATED_OLDER_API(cuGraphNodeGetDependencies, 10000, CUgraphNode node, CUgraphNode* dependencies,
                   std::size_t* count) {
    check(cuGraphNodeGetDependencies_v2(node, dependencies, nullptr, count));
}

EMULATED_OLDER_API(cuGraphNodeGetDependentNodes, 10000, CUgraphNode node, CUgraphNode* dependents,
                   std::size_t* count) {
    check(cuGraphNodeGetDependentNodes_v2(node, dependents, nullptr, count));
}

EMULATED_OLDER_API(cuGraphGetEdges, 10000, CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                   std::size_t* count) {
    check(cuGraphGetEdges_v2(graph, from, to, nullptr, count));
}

EMULATED_OLDER_API(cuGraphAddDependencies, 10000, CUgraph graph, const CUgraphNode* from,
                   const CUgraphNode* to, std::size_t count) {
    check(cuGraphAddDependencies_v2(graph, from, to, nullptr, count));
}

EMULATED_OLDER_API(cuGraphRemoveDependencies, 10000, CUgraph graph, const CUgraphNode* from,
                   const CUgraphNode* to, std::size_t count) {
    check(cuGraphRemoveDependencies_v2(graph, from, to, nullptr, count));
}

EMULATED_OLDER_API(cuGraphAddNode, 12020, CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                   std::size_t count, CUgraphNodeParams* values) {
    check(cuGraphAddNode_v2(node, graph, before, nullptr, count, values));
}

EMULATED_OLDER_API(cuStreamUpdateCaptureDependencies, 11030, CUstream stream, CUgraphNode* nodes,
                   std::size_t count, unsigned int flags) {
    check(cuStreamUpdateCaptureDependencies_v2(stream, nodes, nullptr, count, flags));
}

// Contexts without parameters, and with the parameters of CUDA 11.4

EMULATED_OLDER_API_AS(cuCtxCreate_v2, cuCtxCreate, 3020, CUcontext* context, unsigned int flags,
                      CUdevice device) {
    check(cuCtxCreate_v4(context, nullptr, flags, device));
}

EMULATED_OLDER_API_AS(cuCtxCreate_v3, cuCtxCreate, 11040, CUcontext* context, CUexecAffinityParam* affinity,
                      int count, unsigned int flags, CUdevice device) {
    CUctxCreateParams parameters = {};
    parameters.execAffinityParams = count == 0 ? nullptr : affinity;
    parameters.numExecAffinityParams = count;
    check(cuCtxCreate_v4(context, &parameters, flags, device));
}

}  // namespace emulated::driver
