// Graphs that were captured: asked, instantiated, launched, updated.
#include <algorithm>
#include <vector>

#include "driver/capture.hpp"
#include "driver/interruption.hpp"
#include "driver/older_versions.hpp"
#include "driver/own_operation.hpp"

namespace emulated::driver {
using streams::CapturedGraph;
using streams::CapturedNode;
using streams::Captures;

using Difference = streams::ExecutableGraph::Difference;

namespace {

/// Its operations would use memory that is lost.
bool outlived_by_a_reset(const CapturedGraph& graph) {
    const std::uint64_t resets = Process::get().resets();
    const auto before = [&](const auto& node) {
        return node->resets != resets || (node->child != nullptr && outlived_by_a_reset(*node->child));
    };
    if (resets == 0 || std::none_of(graph.nodes.begin(), graph.nodes.end(), before)) return false;
    Process::get().set_report("this graph was captured before the device was reset: capture it again");
    return true;
}

CUgraphNode handle_of(const CapturedNode* node) noexcept {
    return reinterpret_cast<CUgraphNode>(const_cast<CapturedNode*>(node));
}

/// "`nodes` may be NULL, in which case this function will return the number": the convention of every
/// function that lists nodes.
CUresult list(const std::vector<const CapturedNode*>& all, CUgraphNode* nodes, std::size_t* count) {
    EMULATED_REQUIRE(count != nullptr, CUDA_ERROR_INVALID_VALUE);
    if (nodes != nullptr) {
        for (std::size_t i = 0; i < *count; ++i) nodes[i] = i < all.size() ? handle_of(all[i]) : nullptr;
        *count = std::min(*count, all.size());
    } else {
        *count = all.size();
    }
    return CUDA_SUCCESS;
}

/// The node behind a handle, kept while it is looked at; null for what is none of a live graph.
std::shared_ptr<GraphObject> graph_with(CUgraphNode handle) {
    const auto* wanted = reinterpret_cast<const CapturedNode*>(handle);
    return Captures::get().paused([&]() -> std::shared_ptr<GraphObject> {
        const auto found = Process::get().handles().all<GraphObject>(
            [&](const GraphObject& graph) { return graph.has(wanted); });
        return found.empty() ? nullptr : found.front();
    });
}

/// A snapshot; nothing for a graph that a capture still fills.
std::optional<CapturedGraph> finished(const GraphObject& graph) {
    return Captures::get().paused([&]() -> std::optional<CapturedGraph> {
        if (Captures::get().fills(graph)) return std::nullopt;
        return graph.copy();
    });
}

CUresult instantiate(CUgraphExec* out, CUgraph handle, unsigned long long flags) {
    EMULATED_CHECK(initialised());
    constexpr unsigned long long known =
        CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
        CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    const auto graph = find_object<GraphObject>(handle);
    EMULATED_REQUIRE(out != nullptr && graph != nullptr && (flags & ~known) == 0, CUDA_ERROR_INVALID_VALUE);
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) {
        Process::get().set_report("the emulated device does not launch graphs from kernels");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    const auto snapshot = finished(*graph);
    EMULATED_REQUIRE(snapshot.has_value(), CUDA_ERROR_ILLEGAL_STATE);
    *out = new_handle<CUgraphExec>(std::make_shared<GraphExecObject>(*snapshot));
    return CUDA_SUCCESS;
}

}  // namespace

EMULATED_DRIVER_API(cuGraphCreate, 10000, CUgraph* graph, unsigned int flags) {
    EMULATED_REQUIRE(graph != nullptr && flags == 0, CUDA_ERROR_INVALID_VALUE);
    *graph = new_handle<CUgraph>(std::make_shared<GraphObject>());
    return CUDA_SUCCESS;
}

/// What was instantiated from it lives on. A graph that is being captured is its capture's.
EMULATED_API(cuGraphDestroy, 10000, CUgraph handle) {
    const streams::DueDestructors due;
    EMULATED_CHECK(initialised());
    const auto graph = find_object<GraphObject>(handle);
    EMULATED_REQUIRE(graph != nullptr, CUDA_ERROR_INVALID_VALUE);
    const bool busy = Captures::get().paused([&] { return Captures::get().fills(*graph); });
    EMULATED_REQUIRE(!busy, CUDA_ERROR_ILLEGAL_STATE);
    Process::get().handles().remove<GraphObject>(handle);
    graph->held.clear();  // events that were recorded in its capture may keep the rest
    return CUDA_SUCCESS;
}

EMULATED_API(cuGraphGetNodes, 10000, CUgraph handle, CUgraphNode* nodes, std::size_t* count) {
    const auto graph = find_object<GraphObject>(handle);
    EMULATED_REQUIRE(graph != nullptr, CUDA_ERROR_INVALID_VALUE);
    std::vector<const CapturedNode*> all;
    Captures::get().paused([&] {
        for (const auto& node : graph->nodes) all.push_back(node.get());
    });
    return list(all, nodes, count);
}

EMULATED_API(cuGraphGetRootNodes, 10000, CUgraph handle, CUgraphNode* nodes, std::size_t* count) {
    const auto graph = find_object<GraphObject>(handle);
    EMULATED_REQUIRE(graph != nullptr, CUDA_ERROR_INVALID_VALUE);
    std::vector<const CapturedNode*> roots;
    Captures::get().paused([&] {
        for (const auto& node : graph->nodes) {
            if (node->after.empty()) roots.push_back(node.get());
        }
    });
    return list(roots, nodes, count);
}

/// Edges have no data here: all of it is zero, which is what "no data" means.
EMULATED_API(cuGraphNodeGetDependencies, 12030, CUgraphNode handle, CUgraphNode* dependencies,
             CUgraphEdgeData* edges, std::size_t* count) {
    const auto graph = graph_with(handle);
    EMULATED_REQUIRE(graph != nullptr && count != nullptr, CUDA_ERROR_INVALID_VALUE);
    std::vector<const CapturedNode*> before;
    Captures::get().paused([&] {
        const auto* node = reinterpret_cast<const CapturedNode*>(handle);
        before.assign(node->after.begin(), node->after.end());
    });
    if (edges != nullptr) std::fill_n(edges, std::min(*count, before.size()), CUgraphEdgeData{});
    return list(before, dependencies, count);
}

EMULATED_API(cuGraphNodeGetType, 10000, CUgraphNode handle, CUgraphNodeType* type) {
    const auto graph = graph_with(handle);
    EMULATED_REQUIRE(graph != nullptr, CUDA_ERROR_INVALID_VALUE);
    return answer(type, static_cast<CUgraphNodeType>(reinterpret_cast<const CapturedNode*>(handle)->kind));
}

EMULATED_API(cuGraphInstantiateWithFlags, 11040, CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
    // "Only supported by cuGraphInstantiateWithParams."
    EMULATED_REQUIRE((flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) == 0, CUDA_ERROR_INVALID_VALUE);
    return instantiate(exec, graph, flags);
}

EMULATED_STREAM_API(cuGraphInstantiateWithParams, 12000, CUgraphExec* exec, CUgraph graph,
                    CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
    EMULATED_REQUIRE(parameters != nullptr, CUDA_ERROR_INVALID_VALUE);
    const CUresult result = instantiate(exec, graph, parameters->flags);
    parameters->hErrNode_out = nullptr;
    parameters->result_out = result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS
                             : result == CUDA_ERROR_NOT_SUPPORTED
                                 ? CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED
                                 : CUDA_GRAPH_INSTANTIATE_ERROR;
    return result;
}

EMULATED_OLDER_API(cuGraphInstantiate_v2, CUgraphExec* exec, CUgraph graph, CUgraphNode* error, char* log,
                   std::size_t log_bytes) {
    if (error != nullptr) *error = nullptr;
    if (log != nullptr && log_bytes > 0) *log = '\0';
    return instantiate(exec, graph, 0);
}

/// What runs goes on, and is freed when it is done.
EMULATED_API(cuGraphExecDestroy, 10000, CUgraphExec handle) {
    const streams::DueDestructors due;
    EMULATED_CHECK(initialised());
    const auto exec = Process::get().handles().remove<GraphExecObject>(handle);
    return exec == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/// There is nothing to move before a launch.
EMULATED_STREAM_API(cuGraphUpload, 11010, CUgraphExec handle, CUstream stream) {
    EMULATED_STREAM(target, stream);
    EMULATED_REQUIRE(find_object<GraphExecObject>(handle) != nullptr, CUDA_ERROR_INVALID_VALUE);
    const CaptureGate gate(target);
    EMULATED_CHECK(gate.state);
    return gate.captures() ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

/// On a stream that is being captured the graph becomes a node, as it is now.
EMULATED_STREAM_API(cuGraphLaunch, 10000, CUgraphExec handle, CUstream stream) {
    EMULATED_STREAM(target, stream);
    const auto exec = find_object<GraphExecObject>(handle);
    EMULATED_REQUIRE(exec != nullptr, CUDA_ERROR_INVALID_VALUE);
    const CaptureGate gate(target);
    EMULATED_CHECK(gate.state);
    trace(BASCULE_EMULATED_GRAPH_LAUNCH, stream, nullptr, 0, "cuGraphLaunch");
    const std::lock_guard lock(exec->mutex);
    EMULATED_REQUIRE(!outlived_by_a_reset(exec->graph()), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    if (gate.captures()) {
        CapturedNode node;
        node.kind = CapturedNode::Kind::graph;
        node.child = std::make_shared<CapturedGraph>(exec->graph().copy());
        return gate.add(std::move(node));
    }
    const OwnOperation operation;
    target.context->graph.launch(*target.stream, exec->steps(), exec->lanes());
    Process::get().kernel_enqueued();
    return operation.error();
}

EMULATED_API(cuGraphExecUpdate, 12000, CUgraphExec exec_handle, CUgraph graph_handle,
             CUgraphExecUpdateResultInfo* info) {
    const streams::DueDestructors due;
    EMULATED_REQUIRE(info != nullptr, CUDA_ERROR_INVALID_VALUE);
    *info = {CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
    const auto exec = find_object<GraphExecObject>(exec_handle);
    const auto graph = find_object<GraphObject>(graph_handle);
    EMULATED_REQUIRE(exec != nullptr && graph != nullptr, CUDA_ERROR_INVALID_VALUE);
    const std::lock_guard lock(exec->mutex);
    const auto difference = Captures::get().paused([&]() -> std::optional<Difference> {
        if (Captures::get().fills(*graph)) return std::nullopt;
        return exec->update(*graph);
    });
    EMULATED_REQUIRE(difference.has_value(), CUDA_ERROR_ILLEGAL_STATE);
    *info = {static_cast<CUgraphExecUpdateResult>(difference->what), handle_of(difference->node),
             handle_of(difference->from)};
    return difference->what == Difference::What::none ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

EMULATED_OLDER_API(graph_exec_update_v1, CUgraphExec exec, CUgraph graph, CUgraphNode* error,
                   CUgraphExecUpdateResult* result) {
    CUgraphExecUpdateResultInfo info = {};
    const CUresult code = cuGraphExecUpdate_v2(exec, graph, &info);
    if (error != nullptr) *error = info.errorNode;
    if (result != nullptr) *result = info.result;
    return code;
}

}  // namespace emulated::driver
