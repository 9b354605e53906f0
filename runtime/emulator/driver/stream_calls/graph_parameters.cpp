// The functions of each kind of node that are older than cuGraphAddNode: each comes down to it.
#include <algorithm>
#include <cstring>

#include "driver/older_versions.hpp"
#include "driver/stream_calls/graph_changes.hpp"

namespace emulated::driver {
using streams::WorkNode;

namespace {

CUDA_KERNEL_NODE_PARAMS_v3 to_v3(const CUDA_KERNEL_NODE_PARAMS_v2& given) noexcept {
    static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS_v3) == sizeof given);
    CUDA_KERNEL_NODE_PARAMS_v3 made;
    std::memcpy(&made, &given, sizeof made);
    return made;
}

/// Before CUDA 12: without what a CUkernel needs.
CUDA_KERNEL_NODE_PARAMS_v2 to_v2(const CUDA_KERNEL_NODE_PARAMS_v1& given) noexcept {
    CUDA_KERNEL_NODE_PARAMS_v2 made = {};
    std::memcpy(&made, &given, sizeof given);
    return made;
}

CUgraphNodeParams values_of(const CUDA_KERNEL_NODE_PARAMS_v2& given) {
    CUgraphNodeParams values = zeros_of(CU_GRAPH_NODE_TYPE_KERNEL);
    values.kernel = to_v3(given);
    return values;
}

CUgraphNodeParams values_of(const CUDA_MEMCPY3D& given, CUcontext context) {
    CUgraphNodeParams values = zeros_of(CU_GRAPH_NODE_TYPE_MEMCPY);
    values.memcpy = {0, 0, context, given};
    return values;
}

CUgraphNodeParams values_of(const CUDA_MEMSET_NODE_PARAMS& given, CUcontext context) {
    CUgraphNodeParams values = zeros_of(CU_GRAPH_NODE_TYPE_MEMSET);
    values.memset = {given.dst,   given.pitch,  given.value, given.elementSize,
                     given.width, given.height, context};
    return values;
}

CUgraphNodeParams values_of(const CUDA_HOST_NODE_PARAMS& given) {
    CUgraphNodeParams values = zeros_of(CU_GRAPH_NODE_TYPE_HOST);
    values.host = {given.fn, given.userData};
    return values;
}

CUgraphNodeParams values_of_child(CUgraph graph) {
    CUgraphNodeParams values = zeros_of(CU_GRAPH_NODE_TYPE_GRAPH);
    values.graph.graph = graph;
    return values;
}

CUgraphNodeParams values_of_event(CUgraphNodeType type, CUevent event) {
    CUgraphNodeParams values = zeros_of(type);
    if (type == CU_GRAPH_NODE_TYPE_WAIT_EVENT) {
        values.eventWait.event = event;
    } else {
        values.eventRecord.event = event;
    }
    return values;
}

/// Gives `use(values)` the parameters of a node of this type.
template <class Use>
CUresult get(CUgraphNode node, CUgraphNodeType type, const void* out, const Use& use) {
    EMULATED_REQUIRE(out != nullptr, CUDA_ERROR_INVALID_VALUE);
    std::shared_ptr<const NodeParameters> found;
    EMULATED_CHECK(get_node(found, node, type));
    use(found->values);
    return CUDA_SUCCESS;
}

}  // namespace

/// The functions of a kind with one parameter `given`: adding, replacing, replacing in an executable graph.
#define EMULATED_NODE_ADD(name, version, Given, values)                                     \
    EMULATED_API(name, version, CUgraphNode* out, CUgraph graph, const CUgraphNode* before, \
                 std::size_t count, Given given) {                                          \
        EMULATED_REQUIRE(given != nullptr, CUDA_ERROR_INVALID_VALUE);                       \
        CUgraphNodeParams all = values;                                                     \
        return add_node(out, graph, {before, nullptr, count}, all);                         \
    }
#define EMULATED_NODE_SET(name, version, Given, values)               \
    EMULATED_API(name, version, CUgraphNode node, Given given) {      \
        EMULATED_REQUIRE(given != nullptr, CUDA_ERROR_INVALID_VALUE); \
        CUgraphNodeParams all = values;                               \
        return set_node(node, all);                                   \
    }
#define EMULATED_NODE_EXEC_SET(name, version, Given, values)                       \
    EMULATED_API(name, version, CUgraphExec exec, CUgraphNode node, Given given) { \
        EMULATED_REQUIRE(given != nullptr, CUDA_ERROR_INVALID_VALUE);              \
        CUgraphNodeParams all = values;                                            \
        return set_exec_node(exec, node, all);                                     \
    }

// Kernels

// Written out: <cuda.h> renames them, which would happen before the macros above put their names together.
EMULATED_API(cuGraphAddKernelNode, 12000, CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
             std::size_t count, const CUDA_KERNEL_NODE_PARAMS_v2* given) {
    EMULATED_REQUIRE(given != nullptr, CUDA_ERROR_INVALID_VALUE);
    CUgraphNodeParams all = values_of(*given);
    return add_node(out, graph, {before, nullptr, count}, all);
}

EMULATED_API(cuGraphKernelNodeSetParams, 12000, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* given) {
    EMULATED_REQUIRE(given != nullptr, CUDA_ERROR_INVALID_VALUE);
    CUgraphNodeParams all = values_of(*given);
    return set_node(node, all);
}

EMULATED_API(cuGraphExecKernelNodeSetParams, 12000, CUgraphExec exec, CUgraphNode node,
             const CUDA_KERNEL_NODE_PARAMS_v2* given) {
    EMULATED_REQUIRE(given != nullptr, CUDA_ERROR_INVALID_VALUE);
    CUgraphNodeParams all = values_of(*given);
    return set_exec_node(exec, node, all);
}

EMULATED_API(cuGraphKernelNodeGetParams, 12000, CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2* out) {
    return get(node, CU_GRAPH_NODE_TYPE_KERNEL, out,
               [&](const CUgraphNodeParams& values) { std::memcpy(out, &values.kernel, sizeof *out); });
}

EMULATED_OLDER_API(add_kernel_node_v1, CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                   std::size_t count, const CUDA_KERNEL_NODE_PARAMS_v1* given) {
    EMULATED_REQUIRE(given != nullptr, CUDA_ERROR_INVALID_VALUE);
    const CUDA_KERNEL_NODE_PARAMS_v2 now = to_v2(*given);
    return cuGraphAddKernelNode_v2(out, graph, before, count, &now);
}

EMULATED_OLDER_API(kernel_node_get_params_v1, CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* out) {
    return get(node, CU_GRAPH_NODE_TYPE_KERNEL, out, [&](const CUgraphNodeParams& values) {
        std::memcpy(out, &values.kernel, sizeof *out);
        if (out->func == nullptr) out->func = reinterpret_cast<CUfunction>(values.kernel.kern);
    });
}

EMULATED_OLDER_API(kernel_node_set_params_v1, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* given) {
    EMULATED_REQUIRE(given != nullptr, CUDA_ERROR_INVALID_VALUE);
    const CUDA_KERNEL_NODE_PARAMS_v2 now = to_v2(*given);
    return cuGraphKernelNodeSetParams_v2(node, &now);
}

EMULATED_OLDER_API(exec_kernel_node_set_params_v1, CUgraphExec exec, CUgraphNode node,
                   const CUDA_KERNEL_NODE_PARAMS_v1* given) {
    EMULATED_REQUIRE(given != nullptr, CUDA_ERROR_INVALID_VALUE);
    const CUDA_KERNEL_NODE_PARAMS_v2 now = to_v2(*given);
    return cuGraphExecKernelNodeSetParams_v2(exec, node, &now);
}

namespace {

/// The same launch with other attributes.
CUresult set_attributes(CUgraphNode handle, std::vector<CUlaunchAttribute> attributes) {
    const FoundNode found(handle);
    std::shared_ptr<const NodeParameters> old;
    EMULATED_CHECK(get_node(old, handle, CU_GRAPH_NODE_TYPE_KERNEL));
    const CUDA_KERNEL_NODE_PARAMS_v3& kernel = old->values.kernel;
    const CUlaunchConfig config{kernel.gridDimX,
                                kernel.gridDimY,
                                kernel.gridDimZ,
                                kernel.blockDimX,
                                kernel.blockDimY,
                                kernel.blockDimZ,
                                kernel.sharedMemBytes,
                                nullptr,
                                attributes.empty() ? nullptr : attributes.data(),
                                static_cast<unsigned>(attributes.size())};
    const auto function = kernel.func != nullptr ? kernel.func : reinterpret_cast<CUfunction>(kernel.kern);
    Context* context = find_context(kernel.ctx);
    EMULATED_REQUIRE(context != nullptr, CUDA_ERROR_INVALID_CONTEXT);
    WorkNode made;
    EMULATED_CHECK(make_kernel_node(made, config, function, *context, kernel.kernelParams, nullptr));
    streams::Captures::get().paused([&] { found.node->become(made); });
    return CUDA_SUCCESS;
}

}  // namespace

EMULATED_API(cuGraphKernelNodeGetAttribute, 11000, CUgraphNode node, CUkernelNodeAttrID which,
             CUkernelNodeAttrValue* out) {
    EMULATED_REQUIRE(out != nullptr, CUDA_ERROR_INVALID_VALUE);
    std::shared_ptr<const NodeParameters> found;
    EMULATED_CHECK(get_node(found, node, CU_GRAPH_NODE_TYPE_KERNEL));
    const auto attribute = std::ranges::find(found->attributes, which, &CUlaunchAttribute::id);
    *out = attribute == found->attributes.end() ? CUkernelNodeAttrValue{} : attribute->value;
    return CUDA_SUCCESS;
}

EMULATED_API(cuGraphKernelNodeSetAttribute, 11000, CUgraphNode node, CUkernelNodeAttrID which,
             const CUkernelNodeAttrValue* value) {
    EMULATED_REQUIRE(value != nullptr, CUDA_ERROR_INVALID_VALUE);
    std::shared_ptr<const NodeParameters> found;
    EMULATED_CHECK(get_node(found, node, CU_GRAPH_NODE_TYPE_KERNEL));
    std::vector<CUlaunchAttribute> attributes = found->attributes;
    std::erase_if(attributes, [&](const CUlaunchAttribute& each) { return each.id == which; });
    CUlaunchAttribute added = {};
    added.id = which;
    added.value = *value;
    attributes.push_back(added);
    return set_attributes(node, std::move(attributes));
}

EMULATED_API(cuGraphKernelNodeCopyAttributes, 11000, CUgraphNode to, CUgraphNode from) {
    std::shared_ptr<const NodeParameters> found;
    EMULATED_CHECK(get_node(found, from, CU_GRAPH_NODE_TYPE_KERNEL));
    return set_attributes(to, found->attributes);
}

// Copies and fills, which have a context of their own

EMULATED_API(cuGraphAddMemcpyNode, 10000, CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
             std::size_t count, const CUDA_MEMCPY3D* given, CUcontext context) {
    EMULATED_REQUIRE(given != nullptr, CUDA_ERROR_INVALID_VALUE);
    CUgraphNodeParams all = values_of(*given, context);
    return add_node(out, graph, {before, nullptr, count}, all);
}

EMULATED_NODE_SET(cuGraphMemcpyNodeSetParams, 10000, const CUDA_MEMCPY3D*, values_of(*given, nullptr))

EMULATED_API(cuGraphMemcpyNodeGetParams, 10000, CUgraphNode node, CUDA_MEMCPY3D* out) {
    return get(node, CU_GRAPH_NODE_TYPE_MEMCPY, out,
               [&](const CUgraphNodeParams& values) { *out = values.memcpy.copyParams; });
}

EMULATED_API(cuGraphExecMemcpyNodeSetParams, 10020, CUgraphExec exec, CUgraphNode node,
             const CUDA_MEMCPY3D* given, CUcontext context) {
    EMULATED_REQUIRE(given != nullptr, CUDA_ERROR_INVALID_VALUE);
    CUgraphNodeParams all = values_of(*given, context);
    return set_exec_node(exec, node, all);
}

EMULATED_API(cuGraphAddMemsetNode, 10000, CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
             std::size_t count, const CUDA_MEMSET_NODE_PARAMS* given, CUcontext context) {
    EMULATED_REQUIRE(given != nullptr, CUDA_ERROR_INVALID_VALUE);
    CUgraphNodeParams all = values_of(*given, context);
    return add_node(out, graph, {before, nullptr, count}, all);
}

EMULATED_NODE_SET(cuGraphMemsetNodeSetParams, 10000, const CUDA_MEMSET_NODE_PARAMS*,
                  values_of(*given, nullptr))

EMULATED_API(cuGraphMemsetNodeGetParams, 10000, CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* out) {
    return get(node, CU_GRAPH_NODE_TYPE_MEMSET, out, [&](const CUgraphNodeParams& values) {
        const auto& fill = values.memset;
        *out = {fill.dst, fill.pitch, fill.value, fill.elementSize, fill.width, fill.height};
    });
}

EMULATED_API(cuGraphExecMemsetNodeSetParams, 10020, CUgraphExec exec, CUgraphNode node,
             const CUDA_MEMSET_NODE_PARAMS* given, CUcontext context) {
    EMULATED_REQUIRE(given != nullptr, CUDA_ERROR_INVALID_VALUE);
    CUgraphNodeParams all = values_of(*given, context);
    return set_exec_node(exec, node, all);
}

// Host functions

EMULATED_NODE_ADD(cuGraphAddHostNode, 10000, const CUDA_HOST_NODE_PARAMS*, values_of(*given))
EMULATED_NODE_SET(cuGraphHostNodeSetParams, 10000, const CUDA_HOST_NODE_PARAMS*, values_of(*given))
EMULATED_NODE_EXEC_SET(cuGraphExecHostNodeSetParams, 10020, const CUDA_HOST_NODE_PARAMS*, values_of(*given))

EMULATED_API(cuGraphHostNodeGetParams, 10000, CUgraphNode node, CUDA_HOST_NODE_PARAMS* out) {
    return get(node, CU_GRAPH_NODE_TYPE_HOST, out, [&](const CUgraphNodeParams& values) {
        *out = {values.host.fn, values.host.userData};
    });
}

// Graphs

EMULATED_NODE_ADD(cuGraphAddChildGraphNode, 10000, CUgraph, values_of_child(given))
EMULATED_NODE_EXEC_SET(cuGraphExecChildGraphNodeSetParams, 11010, CUgraph, values_of_child(given))

/// "This call does not clone the graph. Changes to the graph will be reflected in the node".
EMULATED_API(cuGraphChildGraphNodeGetGraph, 10000, CUgraphNode node, CUgraph* out) {
    return get(node, CU_GRAPH_NODE_TYPE_GRAPH, out,
               [&](const CUgraphNodeParams& values) { *out = values.graph.graph; });
}

EMULATED_API(cuGraphAddEmptyNode, 10000, CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
             std::size_t count) {
    CUgraphNodeParams all = zeros_of(CU_GRAPH_NODE_TYPE_EMPTY);
    return add_node(out, graph, {before, nullptr, count}, all);
}

// Events

EMULATED_NODE_ADD(cuGraphAddEventRecordNode, 11010, CUevent,
                  values_of_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, given))
EMULATED_NODE_SET(cuGraphEventRecordNodeSetEvent, 11010, CUevent,
                  values_of_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, given))
EMULATED_NODE_EXEC_SET(cuGraphExecEventRecordNodeSetEvent, 11010, CUevent,
                       values_of_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, given))
EMULATED_NODE_ADD(cuGraphAddEventWaitNode, 11010, CUevent,
                  values_of_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, given))
EMULATED_NODE_SET(cuGraphEventWaitNodeSetEvent, 11010, CUevent,
                  values_of_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, given))
EMULATED_NODE_EXEC_SET(cuGraphExecEventWaitNodeSetEvent, 11010, CUevent,
                       values_of_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, given))

EMULATED_API(cuGraphEventRecordNodeGetEvent, 11010, CUgraphNode node, CUevent* out) {
    return get(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, out,
               [&](const CUgraphNodeParams& values) { *out = values.eventRecord.event; });
}

EMULATED_API(cuGraphEventWaitNodeGetEvent, 11010, CUgraphNode node, CUevent* out) {
    return get(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, out,
               [&](const CUgraphNodeParams& values) { *out = values.eventWait.event; });
}

// Memory

EMULATED_API(cuGraphAddMemAllocNode, 11040, CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
             std::size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* given) {
    EMULATED_REQUIRE(given != nullptr, CUDA_ERROR_INVALID_VALUE);
    CUgraphNodeParams all = zeros_of(CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    std::memcpy(&all.alloc, given, sizeof *given);
    EMULATED_CHECK(add_node(out, graph, {before, nullptr, count}, all));
    given->dptr = all.alloc.dptr;
    return CUDA_SUCCESS;
}

EMULATED_API(cuGraphMemAllocNodeGetParams, 11040, CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* out) {
    return get(node, CU_GRAPH_NODE_TYPE_MEM_ALLOC, out,
               [&](const CUgraphNodeParams& values) { std::memcpy(out, &values.alloc, sizeof *out); });
}

EMULATED_API(cuGraphAddMemFreeNode, 11040, CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
             std::size_t count, CUdeviceptr address) {
    CUgraphNodeParams all = zeros_of(CU_GRAPH_NODE_TYPE_MEM_FREE);
    all.free.dptr = address;
    return add_node(out, graph, {before, nullptr, count}, all);
}

EMULATED_API(cuGraphMemFreeNodeGetParams, 11040, CUgraphNode node, CUdeviceptr* out) {
    return get(node, CU_GRAPH_NODE_TYPE_MEM_FREE, out,
               [&](const CUgraphNodeParams& values) { *out = values.free.dptr; });
}

}  // namespace emulated::driver
