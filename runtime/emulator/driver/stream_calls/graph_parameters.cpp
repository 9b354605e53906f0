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

/// The parameters of a node from those of its kind, or from a graph or an event. `context` is a copy's or fill's.
template <class Given>
CUgraphNodeParams values_of(CUgraphNodeType type, Given given, CUcontext context = nullptr) {
    require(given != nullptr);
    CUgraphNodeParams values = {};
    values.type = type;
    if constexpr (std::is_same_v<Given, const CUDA_MEMCPY3D*>) {
        values.memcpy = {0, 0, context, *given};
    } else if constexpr (requires { sizeof *given; }) {
        std::memcpy(&values.reserved1, given, sizeof *given);
    } else {
        const auto handle = std::as_bytes(std::span(&given, 1));
        std::memcpy(&values.reserved1, handle.data(), handle.size());
    }
    if (type == CU_GRAPH_NODE_TYPE_MEMSET) values.memset.ctx = context;
    return values;
}

template <class Out>
void get(CUgraphNode node, CUgraphNodeType type, Out* out) {
    require(out != nullptr);
    const auto found = get_node(node, type);
    const auto bytes = std::as_writable_bytes(std::span(out, 1));
    std::memcpy(bytes.data(), &found->values.reserved1, bytes.size());
}

/// Before CUDA 12 the function could only be a CUfunction.
CUDA_KERNEL_NODE_PARAMS_v2 to_v2(const CUDA_KERNEL_NODE_PARAMS_v1* given) {
    require(given != nullptr);
    CUDA_KERNEL_NODE_PARAMS_v2 made = {};
    std::memcpy(&made, given, sizeof *given);
    return made;
}

/// Sets a node's parameters again after `change(attributes)` has changed its launch attributes.
template <class Change>
void change_attributes(CUgraphNode node, const Change& change) {
    const auto found = get_node(node, CU_GRAPH_NODE_TYPE_KERNEL);
    NodeParameters changed = *found;
    change(changed.attributes);
    return set_node(node, changed.values, &changed);
}

}  // namespace

// Define the functions of one kind of node with parameters `given`: add, set, set in an executable graph, get. The macros
// concatenate the name in <cudaTypedefs.h> before <cuda.h>'s macros can rename the function.
#define EMULATED_NODE_ADD(name, version, values, ...)                                              \
    EMULATED_DEFINE(name, #name, PFN_##name##_v##version, version, same, always, CUgraphNode* out, \
                    CUgraph graph, const CUgraphNode* before, std::size_t count, __VA_ARGS__) {    \
        CUgraphNodeParams all = values;                                                            \
        add_node(out, graph, {before, nullptr, count}, all);                                       \
    }
#define EMULATED_NODE_SET(name, version, values, ...)                                              \
    EMULATED_DEFINE(name, #name, PFN_##name##_v##version, version, same, always, CUgraphNode node, \
                    __VA_ARGS__) {                                                                 \
        CUgraphNodeParams all = values;                                                            \
        set_node(node, all);                                                                       \
    }
#define EMULATED_NODE_EXEC_SET(name, version, values, ...)                                         \
    EMULATED_DEFINE(name, #name, PFN_##name##_v##version, version, same, always, CUgraphExec exec, \
                    CUgraphNode node, __VA_ARGS__) {                                               \
        CUgraphNodeParams all = values;                                                            \
        set_exec_node(exec, node, all);                                                            \
    }
#define EMULATED_NODE_GET(name, version, type, Out)                                                \
    EMULATED_DEFINE(name, #name, PFN_##name##_v##version, version, same, always, CUgraphNode node, \
                    Out* out) {                                                                    \
        get(node, type, out);                                                                      \
    }
#define EMULATED_NODE(Kind, What, version, exec_version, type, Given, Out)                         \
    EMULATED_NODE_ADD(cuGraphAdd##Kind##Node, version, values_of(type, given), Given given)        \
    EMULATED_NODE_SET(cuGraph##Kind##NodeSet##What, version, values_of(type, given), Given given)  \
    EMULATED_NODE_EXEC_SET(cuGraphExec##Kind##NodeSet##What, exec_version, values_of(type, given), \
                           Given given)                                                            \
    EMULATED_NODE_GET(cuGraph##Kind##NodeGet##What, version, type, Out)
/// The same without `get`, for kinds whose context is a parameter.
#define EMULATED_NODE_IN_CONTEXT(Kind, type, Given)                                                  \
    EMULATED_NODE_ADD(cuGraphAdd##Kind##Node, 10000, values_of(type, given, context), Given given,   \
                      CUcontext context)                                                             \
    EMULATED_NODE_SET(cuGraph##Kind##NodeSetParams, 10000, values_of(type, given), Given given)      \
    EMULATED_NODE_EXEC_SET(cuGraphExec##Kind##NodeSetParams, 10020, values_of(type, given, context), \
                           Given given, CUcontext context)

EMULATED_NODE(Kernel, Params, 12000, 12000, CU_GRAPH_NODE_TYPE_KERNEL, const CUDA_KERNEL_NODE_PARAMS_v2*,
              CUDA_KERNEL_NODE_PARAMS_v2)
EMULATED_NODE(Host, Params, 10000, 10020, CU_GRAPH_NODE_TYPE_HOST, const CUDA_HOST_NODE_PARAMS*,
              CUDA_HOST_NODE_PARAMS)
EMULATED_NODE(EventRecord, Event, 11010, 11010, CU_GRAPH_NODE_TYPE_EVENT_RECORD, CUevent, CUevent)
EMULATED_NODE(EventWait, Event, 11010, 11010, CU_GRAPH_NODE_TYPE_WAIT_EVENT, CUevent, CUevent)
EMULATED_NODE_IN_CONTEXT(Memset, CU_GRAPH_NODE_TYPE_MEMSET, const CUDA_MEMSET_NODE_PARAMS*)
EMULATED_NODE_GET(cuGraphMemsetNodeGetParams, 10000, CU_GRAPH_NODE_TYPE_MEMSET, CUDA_MEMSET_NODE_PARAMS)
EMULATED_NODE_IN_CONTEXT(Memcpy, CU_GRAPH_NODE_TYPE_MEMCPY, const CUDA_MEMCPY3D*)

EMULATED_API(cuGraphMemcpyNodeGetParams, 10000, CUgraphNode node, CUDA_MEMCPY3D* out) {
    CUDA_MEMCPY_NODE_PARAMS found = {};
    require(out != nullptr);
    get(node, CU_GRAPH_NODE_TYPE_MEMCPY, &found);
    *out = found.copyParams;
}

EMULATED_OLDER_API(cuGraphAddKernelNode, 10000, CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                   std::size_t count, const CUDA_KERNEL_NODE_PARAMS_v1* given) {
    const CUDA_KERNEL_NODE_PARAMS_v2 now = to_v2(given);
    check(cuGraphAddKernelNode_v2(out, graph, before, count, &now));
}

EMULATED_OLDER_API(cuGraphKernelNodeGetParams, 10000, CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* out) {
    CUDA_KERNEL_NODE_PARAMS_v2 now = {};
    require(out != nullptr);
    get(node, CU_GRAPH_NODE_TYPE_KERNEL, &now);
    if (now.func == nullptr) now.func = reinterpret_cast<CUfunction>(now.kern);
    std::memcpy(out, &now, sizeof *out);
}

EMULATED_OLDER_API(cuGraphKernelNodeSetParams, 10000, CUgraphNode node,
                   const CUDA_KERNEL_NODE_PARAMS_v1* given) {
    const CUDA_KERNEL_NODE_PARAMS_v2 now = to_v2(given);
    check(cuGraphKernelNodeSetParams_v2(node, &now));
}

EMULATED_OLDER_API(cuGraphExecKernelNodeSetParams, 10010, CUgraphExec exec, CUgraphNode node,
                   const CUDA_KERNEL_NODE_PARAMS_v1* given) {
    const CUDA_KERNEL_NODE_PARAMS_v2 now = to_v2(given);
    check(cuGraphExecKernelNodeSetParams_v2(exec, node, &now));
}

EMULATED_API(cuGraphKernelNodeGetAttribute, 11000, CUgraphNode node, CUkernelNodeAttrID which,
             CUkernelNodeAttrValue* out) {
    require(out != nullptr);
    const auto found = get_node(node, CU_GRAPH_NODE_TYPE_KERNEL);
    const auto attribute = std::ranges::find(found->attributes, which, &CUlaunchAttribute::id);
    *out = attribute == found->attributes.end() ? CUkernelNodeAttrValue{} : attribute->value;
}

EMULATED_API(cuGraphKernelNodeSetAttribute, 11000, CUgraphNode node, CUkernelNodeAttrID which,
             const CUkernelNodeAttrValue* value) {
    require(value != nullptr);
    return change_attributes(node, [&](std::vector<CUlaunchAttribute>& attributes) {
        std::erase_if(attributes, [&](const CUlaunchAttribute& each) { return each.id == which; });
        CUlaunchAttribute& added = attributes.emplace_back();
        added.id = which;
        added.value = *value;
    });
}

EMULATED_API(cuGraphKernelNodeCopyAttributes, 11000, CUgraphNode to, CUgraphNode from) {
    const auto found = get_node(from, CU_GRAPH_NODE_TYPE_KERNEL);
    return change_attributes(to, [&](auto& attributes) { attributes = found->attributes; });
}

// Child graphs. cuGraphChildGraphNodeGetGraph: "This call does not clone the graph. Changes to the graph will be
// reflected in the node".

EMULATED_NODE_ADD(cuGraphAddChildGraphNode, 10000, values_of(CU_GRAPH_NODE_TYPE_GRAPH, given), CUgraph given)
EMULATED_NODE_EXEC_SET(cuGraphExecChildGraphNodeSetParams, 11010, values_of(CU_GRAPH_NODE_TYPE_GRAPH, given),
                       CUgraph given)

EMULATED_API(cuGraphChildGraphNodeGetGraph, 10000, CUgraphNode node, CUgraph* out) {
    const FoundNode found(node);
    require(found && found.node->kind == streams::WorkNode::Kind::graph);
    return answer(
        out, streams::Captures::get().paused([&] { return handle_of(found.node->children.front().get()); }));
}

EMULATED_API(cuGraphAddEmptyNode, 10000, CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
             std::size_t count) {
    CUgraphNodeParams all = NodeParameters(CU_GRAPH_NODE_TYPE_EMPTY).values;
    return add_node(out, graph, {before, nullptr, count}, all);
}

// Memory

EMULATED_API(cuGraphAddMemAllocNode, 11040, CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
             std::size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* given) {
    CUgraphNodeParams all = values_of(CU_GRAPH_NODE_TYPE_MEM_ALLOC, given);
    add_node(out, graph, {before, nullptr, count}, all);
    given->dptr = all.alloc.dptr;
}

EMULATED_API(cuGraphAddMemFreeNode, 11040, CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
             std::size_t count, CUdeviceptr address) {
    CUgraphNodeParams all = NodeParameters(CU_GRAPH_NODE_TYPE_MEM_FREE).values;
    all.free.dptr = address;
    return add_node(out, graph, {before, nullptr, count}, all);
}

EMULATED_NODE_GET(cuGraphMemAllocNodeGetParams, 11040, CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                  CUDA_MEM_ALLOC_NODE_PARAMS)
EMULATED_NODE_GET(cuGraphMemFreeNodeGetParams, 11040, CU_GRAPH_NODE_TYPE_MEM_FREE, CUdeviceptr)

}  // namespace emulated::driver
