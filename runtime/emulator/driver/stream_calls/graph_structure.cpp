// Queries and changes of a graph's nodes and edges.
#include <algorithm>
#include <fstream>

#include <fmt/format.h>

#include "driver/graph_nodes.hpp"

namespace emulated::driver {
using streams::Captures;
using streams::Dependency;
using streams::EdgeKind;
using streams::WorkGraph;
using streams::WorkNode;

void publish(const std::shared_ptr<WorkGraph>& graph) {
    Process::get().handles().add(graph);
    for (const auto& node : graph->nodes) {
        for (const auto& child : node->children) publish(child);
    }
}

void withdraw(const WorkGraph& graph) {
    Process::get().handles().remove<GraphObject>(&graph);
    for (const auto& node : graph.nodes) {
        for (const auto& child : node->children) withdraw(*child);
    }
}

std::vector<WorkNode*> nodes_of(const WorkGraph& graph, const CUgraphNode* handles, std::size_t count) {
    require(handles != nullptr || count == 0);
    std::vector<WorkNode*> found;
    for (std::size_t i = 0; i < count; ++i) {
        const FoundNode each(handles[i]);
        require(each.graph.get() == &graph && std::ranges::find(found, each.node) == found.end());
        found.push_back(each.node);
    }
    return found;
}

EdgeKind edge_kind(const CUgraphEdgeData* data, const WorkNode& from, const WorkNode& to) {
    if (data == nullptr) return {};
    const bool reserved = std::ranges::any_of(data->reserved, [](unsigned char byte) { return byte != 0; });
    const bool programmatic = data->type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    const bool kernels = from.kind == WorkNode::Kind::kernel && to.kind == WorkNode::Kind::kernel;
    const bool valid =
        !reserved && data->to_port == 0 &&
        (programmatic ? kernels && (data->from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC ||
                                    data->from_port == CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER)
                      : data->type == 0 && data->from_port == 0);
    require(valid);
    return {data->from_port, data->to_port, data->type};
}

namespace {

/// One row of a list of edges, or of the nodes at one end of them.
struct Edge {
    const WorkNode* from = nullptr;
    const WorkNode* to = nullptr;
    EdgeKind kind{};
};

/// "`nodes` may be NULL, in which case this function will return the number". All functions that list nodes or edges
/// behave so. Entries past the end are set to null.
void list(const std::vector<Edge>& all, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
          std::size_t* count) {
    require(count != nullptr);
    const bool wanted = from != nullptr || to != nullptr;
    const std::size_t room = wanted ? *count : 0;
    *count = wanted ? std::min(room, all.size()) : all.size();
    bool lossy = false;
    for (std::size_t i = 0; i < room; ++i) {
        const Edge edge = i < all.size() ? all[i] : Edge{};
        if (from != nullptr) from[i] = handle_of(edge.from);
        if (to != nullptr) to[i] = handle_of(edge.to);
        if (data != nullptr) data[i] = {edge.kind.from_port, edge.kind.to_port, edge.kind.type, {}};
        lossy |= data == nullptr && edge.kind != EdgeKind{};
    }
    require(!lossy, CUDA_ERROR_LOSSY_QUERY);
}

/// Lists the nodes of a graph for which `wanted(node)` is true.
template <class Wanted>
void list_nodes(CUgraph handle, CUgraphNode* nodes, std::size_t* count, const Wanted& wanted) {
    const auto graph = argument<GraphObject>(handle);
    std::vector<Edge> found;
    Captures::get().paused([&] {
        for (const auto& node : graph->nodes) {
            if (wanted(*node)) found.push_back({node.get(), nullptr});
        }
    });
    return list(found, nodes, nullptr, nullptr, count);
}

/// The edges of a graph for which `wanted(from, to)` is true.
template <class Wanted>
std::vector<Edge> edges_of(const WorkGraph& graph, const Wanted& wanted) {
    std::vector<Edge> found;
    Captures::get().paused([&] {
        for (const auto& node : graph.nodes) {
            for (const Dependency& each : node->after) {
                if (wanted(each.node, node.get())) found.push_back({each.node, node.get(), each.kind});
            }
        }
    });
    return found;
}

/// "Nodes and edges of the graph cannot be deleted."
void refuse_deletion(const WorkGraph& graph) {
    const bool memory = std::ranges::any_of(graph.nodes, [](const auto& node) { return node->is_memory(); });
    if (!memory) return;
    return refuse(CUDA_ERROR_NOT_SUPPORTED,
                  "nodes and edges of a graph that allocates or frees memory cannot be deleted");
}

/// Looks up and checks all given edges first, then calls `change(to, Dependency{from, kind})` for each.
template <class Allow, class Change>
void change_edges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* data,
                  std::size_t count, const Allow& allow, const Change& change) {
    const auto graph = find_object<GraphObject>(handle);
    require(graph != nullptr && (count == 0 || (from != nullptr && to != nullptr)));
    return Captures::get().paused([&] {
        std::vector<std::pair<WorkNode*, Dependency>> edges;  // by the node that the edge leads to
        for (std::size_t i = 0; i < count; ++i) {
            const FoundNode first(from[i]), second(to[i]);
            require(first.graph == graph && second.graph == graph && first.node != second.node);
            const EdgeKind kind = edge_kind(data == nullptr ? nullptr : &data[i], *first.node, *second.node);
            const bool twice = std::ranges::any_of(edges, [&](const auto& edge) {
                return edge.first == second.node && edge.second.node == first.node;
            });
            require(!twice);
            edges.push_back({second.node, {first.node, kind}});
        }
        for (const auto& [node, dependency] : edges) allow(*graph, *node, dependency);
        for (const auto& [node, dependency] : edges) change(*node, dependency);
    });
}

constexpr const char* kind_names[] = {
    "kernel",       "memcpy", "memset", "host",         "graph",       "empty", "event wait",
    "event record", "",       "",       "memory alloc", "memory free", "",      "conditional"};

void write_dot(std::ofstream& file, const WorkGraph& graph, std::string& edges) {
    for (const auto& node : graph.nodes) {
        file << fmt::format("  node{} [label=\"{} {}\"];\n", node->id,
                            kind_names[static_cast<int>(node->kind)], node->id);
        for (const Dependency& each : node->after)
            edges += fmt::format("  node{} -> node{};\n", each.node->id, node->id);
        for (const auto& child : node->children) {
            file << fmt::format("  subgraph cluster{} {{ label=\"in {}\";\n", child->id, node->id);
            write_dot(file, *child, edges);
            file << "  }\n";
        }
    }
}

}  // namespace

EMULATED_API(cuGraphGetNodes, 10000, CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
    return list_nodes(graph, nodes, count, [](const WorkNode&) { return true; });
}

EMULATED_API(cuGraphGetRootNodes, 10000, CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
    return list_nodes(graph, nodes, count, [](const WorkNode& node) { return node.after.empty(); });
}

EMULATED_API(cuGraphGetEdges, 12030, CUgraph handle, CUgraphNode* from, CUgraphNode* to,
             CUgraphEdgeData* data, std::size_t* count) {
    const auto graph = find_object<GraphObject>(handle);
    const bool both = (from == nullptr) == (to == nullptr);
    require(graph != nullptr && both && (data == nullptr || from != nullptr));
    return list(edges_of(*graph, [](auto*, auto*) { return true; }), from, to, data, count);
}

EMULATED_API(cuGraphNodeGetDependencies, 12030, CUgraphNode handle, CUgraphNode* nodes, CUgraphEdgeData* data,
             std::size_t* count) {
    const FoundNode found(handle);
    require(found && (data == nullptr || nodes != nullptr));
    return list(edges_of(*found.graph, [&](auto*, auto* to) { return to == found.node; }), nodes, nullptr,
                data, count);
}

EMULATED_API(cuGraphNodeGetDependentNodes, 12030, CUgraphNode handle, CUgraphNode* nodes,
             CUgraphEdgeData* data, std::size_t* count) {
    const FoundNode found(handle);
    require(found && (data == nullptr || nodes != nullptr));
    return list(edges_of(*found.graph, [&](auto* from, auto*) { return from == found.node; }), nullptr, nodes,
                data, count);
}

EMULATED_API(cuGraphNodeGetType, 10000, CUgraphNode handle, CUgraphNodeType* type) {
    const FoundNode found(handle);
    require(found);
    return answer(type, static_cast<CUgraphNodeType>(found.node->kind));
}

/// "Specifying an existing dependency will return an error." A cycle is reported by the instantiation.
EMULATED_API(cuGraphAddDependencies, 12030, CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
             const CUgraphEdgeData* data, std::size_t count) {
    return change_edges(
        graph, from, to, data, count,
        [](const WorkGraph&, const WorkNode& node, const Dependency& added) {
            require(!node.comes_after(added.node));
        },
        [](WorkNode& node, const Dependency& added) { node.after.push_back(added); });
}

/// "Specifying an edge that does not exist in the graph, with data matching edgeData, results in an error".
EMULATED_API(cuGraphRemoveDependencies, 12030, CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
             const CUgraphEdgeData* data, std::size_t count) {
    const auto same = [](const Dependency& one, const Dependency& other) {
        return one.node == other.node && one.kind == other.kind;
    };
    return change_edges(
        graph, from, to, data, count,
        [&](const WorkGraph& its, const WorkNode& node, const Dependency& gone) {
            require(std::ranges::any_of(node.after, [&](const auto& each) { return same(each, gone); }));
            refuse_deletion(its);
        },
        [&](WorkNode& node, const Dependency& gone) {
            std::erase_if(node.after, [&](const auto& each) { return same(each, gone); });
        });
}

EMULATED_API(cuGraphDestroyNode, 10000, CUgraphNode handle) {
    const streams::DueDestructors due;
    const FoundNode found(handle);
    require(found);
    std::vector<std::shared_ptr<WorkGraph>> children;
    Captures::get().paused([&] {
        require(!Captures::get().fills(*found.graph), CUDA_ERROR_ILLEGAL_STATE);
        refuse_deletion(*found.graph);
        children = found.node->children;
        for (auto graph = found.graph; graph != nullptr; graph = graph->around.lock())
            std::erase(graph->conditions, found.node->condition);
        found.graph->remove(found.node);
    });
    for (const auto& child : children) withdraw(*child);
}

/// "An error is returned" if the clone has no such node.
EMULATED_API(cuGraphNodeFindInClone, 10000, CUgraphNode* out, CUgraphNode original, CUgraph clone) {
    const FoundNode found(original);
    const auto graph = find_object<GraphObject>(clone);
    require(out != nullptr && found && graph != nullptr);
    const WorkNode* made = Captures::get().paused(
        [&] { return graph->find([&](const WorkNode& node) { return node.origin == found.node->id; }); });
    require(made != nullptr);
    *out = handle_of(made);
}

/// Prints kinds and edges only, whatever the flags.
EMULATED_API(cuGraphDebugDotPrint, 11030, CUgraph handle, const char* path, unsigned int) {
    const auto graph = find_object<GraphObject>(handle);
    require(graph != nullptr && path != nullptr);
    std::ofstream file(path);
    require(file, CUDA_ERROR_OPERATING_SYSTEM);
    return Captures::get().paused([&] {
        std::string edges;
        file << "digraph dot {\n";
        write_dot(file, *graph, edges);
        file << edges << "}\n";
        require(file, CUDA_ERROR_OPERATING_SYSTEM);
    });
}

}  // namespace emulated::driver
