// Nodes added and changed: what the functions of each kind of node come down to.
#pragma once

#include <memory>

#include "driver/graph_nodes.hpp"

namespace emulated::driver {

/// Zeros of one kind.
CUgraphNodeParams zeros_of(CUgraphNodeType type) noexcept;

/// What the call returns in `values` (an address, bodies) is there afterwards.
CUresult add_node(CUgraphNode* out, CUgraph graph, const GivenEdges& edges, CUgraphNodeParams& values);
CUresult set_node(CUgraphNode node, CUgraphNodeParams& values);
/// `node` is of the graph that was instantiated.
CUresult set_exec_node(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams& values);
/// What a node of this type does.
CUresult get_node(std::shared_ptr<const NodeParameters>& out, CUgraphNode node, CUgraphNodeType type);

}  // namespace emulated::driver
