// Graphs as clients know them: handles, and what each node is told to do, whether it was captured or made by hand.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <cuda.h>

#include "driver/capture.hpp"
#include "streams/work_graph.hpp"

namespace emulated::driver {

/// A node's parameters as cuGraphAddNode takes them, with all that they point to.
struct NodeParameters final : streams::NodeDetails {
    explicit NodeParameters(CUgraphNodeType type) noexcept { values.type = type; }
    CUgraphNodeParams values{};                 ///< zeros but for the type
    std::vector<std::byte> argument_bytes;      ///< of a kernel
    std::vector<void*> arguments;               ///< into `argument_bytes`
    std::vector<CUlaunchAttribute> attributes;  ///< of a kernel
    std::vector<CUmemAccessDesc> access;        ///< of an allocation
    std::vector<CUgraph> bodies;                ///< of a conditional node
    std::shared_ptr<const void> keeps;          ///< what the node lives with: memory
};

/// Null where a node has none.
inline const NodeParameters* parameters_of(const streams::WorkNode& node) noexcept {
    return static_cast<const NodeParameters*>(node.details.get());
}

/// Makes `node` what `parameters` say: an operation of `context` that is not in a graph yet, and does `work`, which is empty
/// for what does nothing by itself.
void make_node(streams::WorkNode& node, const Context& context, NodeParameters parameters,
               std::function<void()> work = {});

// Each does so for one kind, or says why it cannot be done.

/// `config` without a stream. The parameters are copied.
CUresult make_kernel_node(streams::WorkNode& node, const CUlaunchConfig& config, CUfunction function,
                          Context& context, void** parameters, void** extra);
CUresult make_copy_node(streams::WorkNode& node, const CUDA_MEMCPY3D& copy, Context& context);
CUresult make_fill_node(streams::WorkNode& node, const CUDA_MEMSET_NODE_PARAMS_v2& fill, Context& context,
                        CUstream stream = nullptr, const char* name = "a memset node");
std::function<void()> host_work(CUhostFn function, void* data, const Context& context);
CUresult make_host_node(streams::WorkNode& node, CUhostFn function, void* data, Context& context);
/// `child` is the node's own from now on.
void make_child_node(streams::WorkNode& node, std::shared_ptr<streams::WorkGraph> child,
                     const Context& context);
CUresult make_event_node(streams::WorkNode& node, streams::WorkNode::Kind kind, CUevent event);
/// For `graph` alone. The address is in `allocation` afterwards.
CUresult make_allocation_node(streams::WorkNode& node, CUDA_MEM_ALLOC_NODE_PARAMS_v2& allocation,
                              Context& context, const streams::WorkGraph& graph);
CUresult make_free_node(streams::WorkNode& node, CUdeviceptr address, Context& context,
                        const streams::WorkGraph& graph);

/// "When using stream capture, create an event record node instead"; or a wait node. "This flag is invalid when used
/// outside of capture."
CUresult capture_event(const StreamTarget& target, streams::WorkNode::Kind kind, CUevent event);

// Handles, and what they name.

inline CUgraphNode handle_of(const streams::WorkNode* node) noexcept {
    return reinterpret_cast<CUgraphNode>(const_cast<streams::WorkNode*>(node));
}
inline CUgraph handle_of(const streams::WorkGraph* graph) noexcept {
    return reinterpret_cast<CUgraph>(const_cast<streams::WorkGraph*>(graph));
}

/// A node of a client's graph, which both live as long as this; null for what is none.
struct FoundNode {
    explicit FoundNode(CUgraphNode handle)
        : node(reinterpret_cast<streams::WorkNode*>(handle)), graph(streams::WorkGraph::of(node)) {}
    explicit operator bool() const noexcept { return graph != nullptr; }
    streams::WorkNode* const node;
    const std::shared_ptr<streams::WorkGraph> graph;
};

/// A graph, and those inside its nodes, get handles, or lose them.
void publish(const std::shared_ptr<streams::WorkGraph>& graph);
void withdraw(const streams::WorkGraph& graph);

/// What `handles` name, each once and all of `graph`; nothing otherwise.
std::optional<std::vector<streams::WorkNode*>> nodes_of(const streams::WorkGraph& graph,
                                                        const CUgraphNode* handles, std::size_t count);

/// Nodes at any depth.
inline bool has_memory(const streams::WorkGraph& graph) {
    return graph.find([](const streams::WorkNode& node) { return node.is_memory(); }) != nullptr;
}
inline bool has_conditions(const streams::WorkGraph& graph) {
    return graph.find([](const streams::WorkNode& node) { return node.condition != nullptr; }) != nullptr;
}

/// Edges as a client gives them.
struct GivenEdges {
    const CUgraphNode* from = nullptr;
    const CUgraphEdgeData* data = nullptr;
    std::size_t count = 0;
};
/// What an edge between such nodes is; nothing where there is no such edge.
std::optional<streams::EdgeKind> edge_kind(const CUgraphEdgeData* data, const streams::WorkNode& from,
                                           const streams::WorkNode& to);

// What the functions of each kind of node come down to.

/// What the call returns in `values` (an address, bodies) is there afterwards.
CUresult add_node(CUgraphNode* out, CUgraph graph, const GivenEdges& edges, CUgraphNodeParams& values);
/// What `values` do not say stays as `before` has it; null: as it is.
CUresult set_node(CUgraphNode node, CUgraphNodeParams& values, const NodeParameters* before = nullptr);
/// `node` is of the graph that was instantiated.
CUresult set_exec_node(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams& values);
/// What a node of this type does.
CUresult get_node(std::shared_ptr<const NodeParameters>& out, CUgraphNode node, CUgraphNodeType type);

}  // namespace emulated::driver
