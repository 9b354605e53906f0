// Graphs as clients see them: their handles, and the parameters of each node, whether captured or added by a call.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <cuda.h>

#include "driver/captures.hpp"
#include "streams/work_graph.hpp"

namespace emulated::driver {

/// A node's parameters as cuGraphAddNode takes them. Owns everything that they point to.
struct NodeParameters final : streams::NodeDetails {
    explicit NodeParameters(CUgraphNodeType type) noexcept { values.type = type; }
    CUgraphNodeParams values{};                 ///< zero except for the type
    std::vector<std::byte> argument_bytes;      ///< of a kernel
    std::vector<void*> arguments;               ///< into `argument_bytes`
    std::vector<CUlaunchAttribute> attributes;  ///< of a kernel
    std::vector<CUmemAccessDesc> access;        ///< of an allocation
    std::vector<CUgraph> bodies;                ///< of a conditional node
    std::shared_ptr<const void> keeps;          ///< memory that must live as long as the node
};

/// A node's parameters; null if it has none.
inline const NodeParameters* parameters_of(const streams::WorkNode& node) noexcept {
    return static_cast<const NodeParameters*>(node.details.get());
}

/// Initialises `node` from `parameters` as an operation of `context` that is in no graph yet. `work` is empty for a node
/// that does nothing by itself.
void make_node(streams::WorkNode& node, const Context& context, NodeParameters parameters,
               std::function<void()> work = {});

// Each of these initialises a node of one kind, or throws why it cannot.

/// `config` has no stream. The parameters are copied.
void make_kernel_node(streams::WorkNode& node, const CUlaunchConfig& config, CUfunction function,
                      Context& context, void** parameters, void** extra);
void make_copy_node(streams::WorkNode& node, const CUDA_MEMCPY3D& copy, Context& context);
void make_fill_node(streams::WorkNode& node, const CUDA_MEMSET_NODE_PARAMS_v2& fill, Context& context,
                    CUstream stream = nullptr, const char* name = "a memset node");
std::function<void()> host_work(CUhostFn function, void* data, const Context& context);
void make_host_node(streams::WorkNode& node, CUhostFn function, void* data, Context& context);
/// `child` belongs to the node from now on.
void make_child_node(streams::WorkNode& node, std::shared_ptr<streams::WorkGraph> child,
                     const Context& context);
void make_event_node(streams::WorkNode& node, streams::WorkNode::Kind kind, CUevent event);
/// The node can be added only to `graph`. Writes the address to `allocation`.
void make_allocation_node(streams::WorkNode& node, CUDA_MEM_ALLOC_NODE_PARAMS_v2& allocation,
                          Context& context, const streams::WorkGraph& graph);
void make_free_node(streams::WorkNode& node, CUdeviceptr address, Context& context,
                    const streams::WorkGraph& graph);

/// Adds an event node to the graph that the stream is captured into. "When using stream capture, create an event record
/// node instead" (or a wait node). "This flag is invalid when used outside of capture."
void capture_event(const StreamTarget& target, streams::WorkNode::Kind kind, CUevent event);

// Handles and the objects that they name.

inline CUgraphNode handle_of(const streams::WorkNode* node) noexcept {
    return reinterpret_cast<CUgraphNode>(const_cast<streams::WorkNode*>(node));
}
inline CUgraph handle_of(const streams::WorkGraph* graph) noexcept {
    return reinterpret_cast<CUgraph>(const_cast<streams::WorkGraph*>(graph));
}

/// Looks up a node handle and keeps node and graph alive. `node` is null if the handle is invalid.
struct FoundNode {
    explicit FoundNode(CUgraphNode handle)
        : node(reinterpret_cast<streams::WorkNode*>(handle)), graph(streams::WorkGraph::of(node)) {}
    explicit operator bool() const noexcept { return graph != nullptr; }
    streams::WorkNode* const node;
    const std::shared_ptr<streams::WorkGraph> graph;
};

/// Adds or removes the handles of a graph and of the graphs inside its nodes.
void publish(const std::shared_ptr<streams::WorkGraph>& graph);
void withdraw(const streams::WorkGraph& graph);

/// The nodes named by `handles`. Throws CUDA_ERROR_INVALID_VALUE if a handle is repeated or is not a node of `graph`.
std::vector<streams::WorkNode*> nodes_of(const streams::WorkGraph& graph, const CUgraphNode* handles,
                                         std::size_t count);

/// Both search the nodes of child graphs and bodies too.
inline bool has_memory(const streams::WorkGraph& graph) {
    return graph.find([](const streams::WorkNode& node) { return node.is_memory(); }) != nullptr;
}
inline bool has_conditions(const streams::WorkGraph& graph) {
    return graph.find([](const streams::WorkNode& node) { return node.condition != nullptr; }) != nullptr;
}

/// Edges as a client passes them.
struct GivenEdges {
    const CUgraphNode* from = nullptr;
    const CUgraphEdgeData* data = nullptr;
    std::size_t count = 0;
};
/// The kind of an edge between two nodes: a full dependency if `data` is null. Throws CUDA_ERROR_INVALID_VALUE if such
/// an edge is not allowed.
streams::EdgeKind edge_kind(const CUgraphEdgeData* data, const streams::WorkNode& from,
                            const streams::WorkNode& to);

// The common parts of the functions for each kind of node.

/// Adds a node. Writes results such as an address or bodies to `values`.
void add_node(CUgraphNode* out, CUgraph graph, const GivenEdges& edges, CUgraphNodeParams& values);
/// Changes a node's parameters. Fields that `values` leaves unset are taken from `before`, or stay as they are if it is
/// null.
void set_node(CUgraphNode node, CUgraphNodeParams& values, const NodeParameters* before = nullptr);
/// The same in an executable graph. `node` is the node of the graph from which `exec` was instantiated.
void set_exec_node(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams& values);
/// Reads the parameters of a node, which must be of this type.
std::shared_ptr<const NodeParameters> get_node(CUgraphNode node, CUgraphNodeType type);

}  // namespace emulated::driver
