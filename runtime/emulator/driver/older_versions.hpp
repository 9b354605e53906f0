// What <cuda.h> does not declare: older versions of functions whose signature changed, as older clients know
// them. What changed its name alone (cuMemAlloc, cuMemAlloc_v2) is an alias that the build makes.
#pragma once

#include <cuda.h>

extern "C" {
// In <cudaProfiler.h>, which the wheels lack.
CUresult CUDAAPI cuProfilerStart();
CUresult CUDAAPI cuProfilerStop();
using PFN_cuProfilerStart_v4000 = CUresult(CUDAAPI*)();
using PFN_cuProfilerStop_v4000 = CUresult(CUDAAPI*)();

CUresult CUDAAPI cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device);
CUresult CUDAAPI cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* affinity, int count,
                                unsigned int flags, CUdevice device);
CUresult CUDAAPI cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                           CUgraph* graph, const CUgraphNode** dependencies,
                                           size_t* dependency_count);
CUresult CUDAAPI cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode* error, char* log,
                                       size_t log_bytes);
}

/// Those whose names <cuda.h> renames away: exported under these names.
namespace emulated::driver {
extern "C" {

/// Before CUDA 12: without a result to fill.
CUresult CUDAAPI get_proc_address_v1(const char* symbol, void** function, int version,
                                     cuuint64_t flags) asm("cuGetProcAddress");

/// Before CUDA 11.3: without the graph.
CUresult CUDAAPI capture_info_v1(CUstream stream, CUstreamCaptureStatus* status,
                                 cuuint64_t* id) asm("cuStreamGetCaptureInfo");

/// Before CUDA 10.1: always in the global mode.
CUresult CUDAAPI begin_capture_v1(CUstream stream) asm("cuStreamBeginCapture");

/// Without data of edges.
CUresult CUDAAPI graph_dependencies_v1(CUgraphNode node, CUgraphNode* dependencies,
                                       size_t* count) asm("cuGraphNodeGetDependencies");
CUresult CUDAAPI graph_dependents_v1(CUgraphNode node, CUgraphNode* dependents,
                                     size_t* count) asm("cuGraphNodeGetDependentNodes");
CUresult CUDAAPI graph_edges_v1(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                                size_t* count) asm("cuGraphGetEdges");
CUresult CUDAAPI graph_add_dependencies_v1(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                           size_t count) asm("cuGraphAddDependencies");
CUresult CUDAAPI graph_remove_dependencies_v1(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                              size_t count) asm("cuGraphRemoveDependencies");
CUresult CUDAAPI graph_add_node_v1(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                                   CUgraphNodeParams* values) asm("cuGraphAddNode");
CUresult CUDAAPI update_capture_dependencies_v1(CUstream stream, CUgraphNode* nodes, size_t count,
                                                unsigned int flags) asm("cuStreamUpdateCaptureDependencies");

/// Before CUDA 12: of a CUfunction alone.
CUresult CUDAAPI add_kernel_node_v1(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                                    const CUDA_KERNEL_NODE_PARAMS_v1* given) asm("cuGraphAddKernelNode");
CUresult CUDAAPI kernel_node_get_params_v1(CUgraphNode node,
                                           CUDA_KERNEL_NODE_PARAMS_v1* out) asm("cuGraphKernelNodeGetParams");
CUresult CUDAAPI kernel_node_set_params_v1(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* given) asm(
    "cuGraphKernelNodeSetParams");
CUresult CUDAAPI
exec_kernel_node_set_params_v1(CUgraphExec exec, CUgraphNode node,
                               const CUDA_KERNEL_NODE_PARAMS_v1* given) asm("cuGraphExecKernelNodeSetParams");

/// Before CUDA 12: without the dependency that does not match.
CUresult CUDAAPI graph_exec_update_v1(CUgraphExec exec, CUgraph graph, CUgraphNode* error,
                                      CUgraphExecUpdateResult* result) asm("cuGraphExecUpdate");

/// Before CUDA 12.2: to a device's number, or to CU_DEVICE_CPU.
CUresult CUDAAPI prefetch_v1(CUdeviceptr address, size_t bytes, CUdevice device,
                             CUstream stream) asm("cuMemPrefetchAsync");
CUresult CUDAAPI advise_v1(CUdeviceptr address, size_t bytes, CUmem_advise advice,
                           CUdevice device) asm("cuMemAdvise");

/// Before CUDA 13: tells which copy was refused.
CUresult CUDAAPI copy_batch_v1(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                               CUmemcpyAttributes* attributes, size_t* first_of, size_t entries,
                               size_t* failed, CUstream stream) asm("cuMemcpyBatchAsync");
}
}  // namespace emulated::driver
