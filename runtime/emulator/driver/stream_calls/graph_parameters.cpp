// The functions for single kinds of nodes, older than cuGraphAddNode. Each calls the common functions.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "driver/graph_nodes.hpp"

namespace emulated::driver {
namespace {

// Except for copies, the parameters of each kind are identical to a member of NodeParameters::values or to its beginning.
static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS_v2) == sizeof(CUDA_KERNEL_NODE_PARAMS_v3));
static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS_v1) == offsetof(CUDA_KERNEL_NODE_PARAMS_v2, kern));
static_assert(sizeof(CUDA_MEMSET_NODE_PARAMS_v1) == offsetof(CUDA_MEMSET_NODE_PARAMS_v2, ctx));
static_assert(offsetof(CUDA_HOST_NODE_PARAMS_v1, userData) == offsetof(CUDA_HOST_NODE_PARAMS_v2, userData));
static_assert(sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v1) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v2));

template <class Given>
CUgraphNodeParams values_of(CUgraphNodeType type, const Given& given) {
    CUgraphNodeParams values = {};
    values.type = type;
    const auto bytes = std::as_bytes(std::span(&given, 1));
    std::memcpy(&values.reserved1, bytes.data(), bytes.size());
    return values;
}

CUgraphNodeParams fill_values(const CUDA_MEMSET_NODE_PARAMS& given, CUcontext context) {
    CUgraphNodeParams values = values_of(CU_GRAPH_NODE_TYPE_MEMSET, given);
    values.memset.ctx = context;
    return values;
}

CUgraphNodeParams copy_values(const CUDA_MEMCPY3D& given, CUcontext context) {
    return values_of(CU_GRAPH_NODE_TYPE_MEMCPY, CUDA_MEMCPY_NODE_PARAMS{0, 0, context, given});
}

template <class Out>
CUresult get(CUgraphNode node, CUgraphNodeType type, Out* out) {
    EMULATED_REQUIRE(out != nullptr, CUDA_ERROR_INVALID_VALUE);
    std::shared_ptr<const NodeParameters> found;
    EMULATED_CHECK(get_node(found, node, type));
    const auto bytes = std::as_writable_bytes(std::span(out, 1));
    std::memcpy(bytes.data(), &found->values.reserved1, bytes.size());
    return CUDA_SUCCESS;
}

}  // namespace

// Define the functions of one kind of node with parameters `given`: add, set, set in an executable graph, get. The macros
// concatenate the name in <cudaTypedefs.h> before <cuda.h>'s macros can rename the function.
#define EMULATED_NODE_ADD(name, version, values, ...)                                              \
    EMULATED_DEFINE(name, #name, PFN_##name##_v##version, version, same, always, CUgraphNode* out, \
                    CUgraph graph, const CUgraphNode* before, std::size_t count, __VA_ARGS__) {    \
        EMULATED_REQUIRE(given != nullptr, CUDA_ERROR_INVALID_VALUE);                              \
        CUgraphNodeParams all = values;                                                            \
        return add_node(out, graph, {before, nullptr, count}, all);                                \
    }
#define EMULATED_NODE_SET(name, version, values, ...)                                              \
    EMULATED_DEFINE(name, #name, PFN_##name##_v##version, version, same, always, CUgraphNode node, \
                    __VA_ARGS__) {                                                                 \
        EMULATED_REQUIRE(given != nullptr, CUDA_ERROR_INVALID_VALUE);                              \
        CUgraphNodeParams all = values;                                                            \
        return set_node(node, all);                                                                \
    }
#define EMULATED_NODE_EXEC_SET(name, version, values, ...)                                         \
    EMULATED_DEFINE(name, #name, PFN_##name##_v##version, version, same, always, CUgraphExec exec, \
                    CUgraphNode node, __VA_ARGS__) {                                               \
        EMULATED_REQUIRE(given != nullptr, CUDA_ERROR_INVALID_VALUE);                              \
        CUgraphNodeParams all = values;                                                            \
        return set_exec_node(exec, node, all);                                                     \
    }
#define EMULATED_NODE_GET(name, version, type, Out)                                                \
    EMULATED_DEFINE(name, #name, PFN_##name##_v##version, version, same, always, CUgraphNode node, \
                    Out* out) {                                                                    \
        return get(node, type, out);                                                               \
    }

// Kernels

EMULATED_NODE_ADD(cuGraphAddKernelNode, 12000, values_of(CU_GRAPH_NODE_TYPE_KERNEL, *given),
                  const CUDA_KERNEL_NODE_PARAMS_v2* given)
EMULATED_NODE_SET(cuGraphKernelNodeSetParams, 12000, values_of(CU_GRAPH_NODE_TYPE_KERNEL, *given),
                  const CUDA_KERNEL_NODE_PARAMS_v2* given)
EMULATED_NODE_EXEC_SET(cuGraphExecKernelNodeSetParams, 12000, values_of(CU_GRAPH_NODE_TYPE_KERNEL, *given),
                       const CUDA_KERNEL_NODE_PARAMS_v2* given)
EMULATED_NODE_GET(cuGraphKernelNodeGetParams, 12000, CU_GRAPH_NODE_TYPE_KERNEL, CUDA_KERNEL_NODE_PARAMS_v2)

namespace {

/// Before CUDA 12 the function could only be a CUfunction.
CUDA_KERNEL_NODE_PARAMS_v2 to_v2(const CUDA_KERNEL_NODE_PARAMS_v1& given) noexcept {
    CUDA_KERNEL_NODE_PARAMS_v2 made = {};
    std::memcpy(&made, &given, sizeof given);
    return made;
}

}  // namespace

EMULATED_OLDER_API(cuGraphAddKernelNode, 10000, CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                   std::size_t count, const CUDA_KERNEL_NODE_PARAMS_v1* given) {
    EMULATED_REQUIRE(given != nullptr, CUDA_ERROR_INVALID_VALUE);
    const CUDA_KERNEL_NODE_PARAMS_v2 now = to_v2(*given);
    return cuGraphAddKernelNode_v2(out, graph, before, count, &now);
}

EMULATED_OLDER_API(cuGraphKernelNodeGetParams, 10000, CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* out) {
    CUDA_KERNEL_NODE_PARAMS_v2 now = {};
    EMULATED_REQUIRE(out != nullptr, CUDA_ERROR_INVALID_VALUE);
    EMULATED_CHECK(get(node, CU_GRAPH_NODE_TYPE_KERNEL, &now));
    if (now.func == nullptr) now.func = reinterpret_cast<CUfunction>(now.kern);
    std::memcpy(out, &now, sizeof *out);
    return CUDA_SUCCESS;
}

EMULATED_OLDER_API(cuGraphKernelNodeSetParams, 10000, CUgraphNode node,
                   const CUDA_KERNEL_NODE_PARAMS_v1* given) {
    EMULATED_REQUIRE(given != nullptr, CUDA_ERROR_INVALID_VALUE);
    const CUDA_KERNEL_NODE_PARAMS_v2 now = to_v2(*given);
    return cuGraphKernelNodeSetParams_v2(node, &now);
}

EMULATED_OLDER_API(cuGraphExecKernelNodeSetParams, 10010, CUgraphExec exec, CUgraphNode node,
                   const CUDA_KERNEL_NODE_PARAMS_v1* given) {
    EMULATED_REQUIRE(given != nullptr, CUDA_ERROR_INVALID_VALUE);
    const CUDA_KERNEL_NODE_PARAMS_v2 now = to_v2(*given);
    return cuGraphExecKernelNodeSetParams_v2(exec, node, &now);
}

namespace {

/// Sets a node's parameters again after `change(attributes)` has changed its launch attributes.
template <class Change>
CUresult change_attributes(CUgraphNode node, const Change& change) {
    std::shared_ptr<const NodeParameters> found;
    EMULATED_CHECK(get_node(found, node, CU_GRAPH_NODE_TYPE_KERNEL));
    NodeParameters changed = *found;
    change(changed.attributes);
    return set_node(node, changed.values, &changed);
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
    return change_attributes(node, [&](std::vector<CUlaunchAttribute>& attributes) {
        std::erase_if(attributes, [&](const CUlaunchAttribute& each) { return each.id == which; });
        CUlaunchAttribute& added = attributes.emplace_back();
        added.id = which;
        added.value = *value;
    });
}

EMULATED_API(cuGraphKernelNodeCopyAttributes, 11000, CUgraphNode to, CUgraphNode from) {
    std::shared_ptr<const NodeParameters> found;
    EMULATED_CHECK(get_node(found, from, CU_GRAPH_NODE_TYPE_KERNEL));
    return change_attributes(to, [&](auto& attributes) { attributes = found->attributes; });
}

// Copies and fills, whose context is a parameter

EMULATED_NODE_ADD(cuGraphAddMemcpyNode, 10000, copy_values(*given, context), const CUDA_MEMCPY3D* given,
                  CUcontext context)
EMULATED_NODE_SET(cuGraphMemcpyNodeSetParams, 10000, copy_values(*given, nullptr), const CUDA_MEMCPY3D* given)
EMULATED_NODE_EXEC_SET(cuGraphExecMemcpyNodeSetParams, 10020, copy_values(*given, context),
                       const CUDA_MEMCPY3D* given, CUcontext context)

EMULATED_API(cuGraphMemcpyNodeGetParams, 10000, CUgraphNode node, CUDA_MEMCPY3D* out) {
    CUDA_MEMCPY_NODE_PARAMS found = {};
    EMULATED_REQUIRE(out != nullptr, CUDA_ERROR_INVALID_VALUE);
    EMULATED_CHECK(get(node, CU_GRAPH_NODE_TYPE_MEMCPY, &found));
    *out = found.copyParams;
    return CUDA_SUCCESS;
}

EMULATED_NODE_ADD(cuGraphAddMemsetNode, 10000, fill_values(*given, context),
                  const CUDA_MEMSET_NODE_PARAMS* given, CUcontext context)
EMULATED_NODE_SET(cuGraphMemsetNodeSetParams, 10000, fill_values(*given, nullptr),
                  const CUDA_MEMSET_NODE_PARAMS* given)
EMULATED_NODE_EXEC_SET(cuGraphExecMemsetNodeSetParams, 10020, fill_values(*given, context),
                       const CUDA_MEMSET_NODE_PARAMS* given, CUcontext context)
EMULATED_NODE_GET(cuGraphMemsetNodeGetParams, 10000, CU_GRAPH_NODE_TYPE_MEMSET, CUDA_MEMSET_NODE_PARAMS)

// Host functions

EMULATED_NODE_ADD(cuGraphAddHostNode, 10000, values_of(CU_GRAPH_NODE_TYPE_HOST, *given),
                  const CUDA_HOST_NODE_PARAMS* given)
EMULATED_NODE_SET(cuGraphHostNodeSetParams, 10000, values_of(CU_GRAPH_NODE_TYPE_HOST, *given),
                  const CUDA_HOST_NODE_PARAMS* given)
EMULATED_NODE_EXEC_SET(cuGraphExecHostNodeSetParams, 10020, values_of(CU_GRAPH_NODE_TYPE_HOST, *given),
                       const CUDA_HOST_NODE_PARAMS* given)
EMULATED_NODE_GET(cuGraphHostNodeGetParams, 10000, CU_GRAPH_NODE_TYPE_HOST, CUDA_HOST_NODE_PARAMS)

// Graphs. "This call does not clone the graph. Changes to the graph will be reflected in the node".

EMULATED_NODE_ADD(cuGraphAddChildGraphNode, 10000, values_of(CU_GRAPH_NODE_TYPE_GRAPH, given), CUgraph given)
EMULATED_NODE_EXEC_SET(cuGraphExecChildGraphNodeSetParams, 11010, values_of(CU_GRAPH_NODE_TYPE_GRAPH, given),
                       CUgraph given)

EMULATED_API(cuGraphChildGraphNodeGetGraph, 10000, CUgraphNode node, CUgraph* out) {
    const FoundNode found(node);
    EMULATED_REQUIRE(found && found.node->kind == streams::WorkNode::Kind::graph, CUDA_ERROR_INVALID_VALUE);
    return answer(
        out, streams::Captures::get().paused([&] { return handle_of(found.node->children.front().get()); }));
}

EMULATED_API(cuGraphAddEmptyNode, 10000, CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
             std::size_t count) {
    CUgraphNodeParams all = NodeParameters(CU_GRAPH_NODE_TYPE_EMPTY).values;
    return add_node(out, graph, {before, nullptr, count}, all);
}

// Events

EMULATED_NODE_ADD(cuGraphAddEventRecordNode, 11010, values_of(CU_GRAPH_NODE_TYPE_EVENT_RECORD, given),
                  CUevent given)
EMULATED_NODE_SET(cuGraphEventRecordNodeSetEvent, 11010, values_of(CU_GRAPH_NODE_TYPE_EVENT_RECORD, given),
                  CUevent given)
EMULATED_NODE_EXEC_SET(cuGraphExecEventRecordNodeSetEvent, 11010,
                       values_of(CU_GRAPH_NODE_TYPE_EVENT_RECORD, given), CUevent given)
EMULATED_NODE_GET(cuGraphEventRecordNodeGetEvent, 11010, CU_GRAPH_NODE_TYPE_EVENT_RECORD, CUevent)
EMULATED_NODE_ADD(cuGraphAddEventWaitNode, 11010, values_of(CU_GRAPH_NODE_TYPE_WAIT_EVENT, given),
                  CUevent given)
EMULATED_NODE_SET(cuGraphEventWaitNodeSetEvent, 11010, values_of(CU_GRAPH_NODE_TYPE_WAIT_EVENT, given),
                  CUevent given)
EMULATED_NODE_EXEC_SET(cuGraphExecEventWaitNodeSetEvent, 11010,
                       values_of(CU_GRAPH_NODE_TYPE_WAIT_EVENT, given), CUevent given)
EMULATED_NODE_GET(cuGraphEventWaitNodeGetEvent, 11010, CU_GRAPH_NODE_TYPE_WAIT_EVENT, CUevent)

// Memory

EMULATED_API(cuGraphAddMemAllocNode, 11040, CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
             std::size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* given) {
    EMULATED_REQUIRE(given != nullptr, CUDA_ERROR_INVALID_VALUE);
    CUgraphNodeParams all = values_of(CU_GRAPH_NODE_TYPE_MEM_ALLOC, *given);
    EMULATED_CHECK(add_node(out, graph, {before, nullptr, count}, all));
    given->dptr = all.alloc.dptr;
    return CUDA_SUCCESS;
}

EMULATED_API(cuGraphAddMemFreeNode, 11040, CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
             std::size_t count, CUdeviceptr address) {
    CUgraphNodeParams all = values_of(CU_GRAPH_NODE_TYPE_MEM_FREE, address);
    return add_node(out, graph, {before, nullptr, count}, all);
}

EMULATED_NODE_GET(cuGraphMemAllocNodeGetParams, 11040, CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                  CUDA_MEM_ALLOC_NODE_PARAMS)
EMULATED_NODE_GET(cuGraphMemFreeNodeGetParams, 11040, CU_GRAPH_NODE_TYPE_MEM_FREE, CUdeviceptr)

}  // namespace emulated::driver
