// Graphs as a whole: creation, cloning, instantiation, launches and updates.

#include <algorithm>

#include "driver/graph_nodes.hpp"
#include "driver/interruption.hpp"
#include "driver/memory_calls/graph_memory.hpp"
#include "driver/own_operation.hpp"

namespace emulated::driver {
using streams::Captures;
using streams::WorkGraph;
using streams::WorkNode;

using Difference = streams::ExecutableGraph::Difference;

namespace {

/// Refuses a graph from before a reset, because its operations would use lost memory.
void refuse_outlived(const WorkGraph& graph) {
    const std::uint64_t resets = Process::get().resets();
    if (resets == 0 || graph.find([&](const WorkNode& node) { return node.resets != resets; }) == nullptr)
        return;
    return refuse(CUDA_ERROR_CONTEXT_IS_DESTROYED,
                  "this graph was made before the device was reset: make it again");
}

/// Why a graph cannot be instantiated.
struct Failure {
    CUresult code = CUDA_SUCCESS;
    CUgraphInstantiateResult reason = CUDA_GRAPH_INSTANTIATE_ERROR;
    const WorkNode* node = nullptr;
    const char* report = "";
};

/// "Allowed node types are kernel nodes, empty nodes, child graphs, memsets, memcopies, and conditionals."
bool is_allowed_in_body(const WorkNode& node) noexcept {
    using Kind = WorkNode::Kind;
    constexpr Kind allowed[] = {Kind::kernel, Kind::copy,  Kind::fill,
                                Kind::graph,  Kind::empty, Kind::conditional};
    return std::ranges::find(allowed, node.kind) != std::end(allowed);
}

Failure failure_of(const WorkGraph& graph, bool in_body) {
    if (!graph.in_order())
        return {CUDA_ERROR_INVALID_VALUE, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, nullptr,
                "the edges of this graph go round in a circle"};
    if (std::ranges::any_of(graph.conditions, [](const auto& each) { return !each->has_node; }))
        return {CUDA_ERROR_INVALID_VALUE, CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED, nullptr,
                "a conditional handle of this graph has no conditional node"};
    for (const auto& node : graph.nodes) {
        if (in_body && !is_allowed_in_body(*node))
            return {CUDA_ERROR_INVALID_VALUE, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, node.get(),
                    "the body of a conditional node has a node of a kind that is not allowed there"};
        const bool bodies = in_body || node->kind == WorkNode::Kind::conditional;
        for (const auto& child : node->children) {
            const Failure inside = failure_of(*child, bodies);
            if (inside.code != CUDA_SUCCESS) return inside;
        }
    }
    return {};
}

Failure instantiate(CUgraphExec* out, WorkGraph& graph, unsigned long long flags) {
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0)
        return {CUDA_ERROR_NOT_SUPPORTED, CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED, nullptr,
                "the emulated device does not launch graphs from kernels"};
    return Captures::get().paused([&]() -> Failure {
        if (Captures::get().fills(graph)) return {CUDA_ERROR_ILLEGAL_STATE};
        const Failure found = failure_of(graph, false);
        if (found.code != CUDA_SUCCESS) return found;
        const bool once = has_memory(graph) || has_conditions(graph);
        if (once && !graph.instance.expired())
            return {CUDA_ERROR_NOT_SUPPORTED, CUDA_GRAPH_INSTANTIATE_ERROR, nullptr,
                    "a graph with memory or conditional nodes can be instantiated once at a time"};
        auto exec = std::make_shared<GraphExecObject>(graph);
        exec->flags = flags;
        if (once) graph.instance = exec;
        *out = new_handle<CUgraphExec>(std::move(exec));
        return {};
    });
}

/// Instantiates a graph. `info` may be null.
void instantiate(CUgraphExec* out, CUgraph handle, unsigned long long flags,
                 CUDA_GRAPH_INSTANTIATE_PARAMS* info) {
    if (info != nullptr) info->hErrNode_out = nullptr;
    if (info != nullptr) info->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
    check(initialised());
    constexpr unsigned long long known =
        CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
        CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    const auto graph = find_object<GraphObject>(handle);
    require(out != nullptr && graph != nullptr && !graph->embedded && (flags & ~known) == 0);
    const bool busy = Captures::get().paused([&] { return Captures::get().fills(*graph); });
    if (!busy) unsafe_now("cuGraphInstantiate");
    const Failure failure = instantiate(out, *graph, flags);
    if (failure.code != CUDA_SUCCESS) Process::get().set_report(failure.report);
    if (info != nullptr) {
        info->hErrNode_out = handle_of(failure.node);
        info->result_out = failure.code == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : failure.reason;
    }
    check(failure.code);
}

}  // namespace

EMULATED_DRIVER_API(cuGraphCreate, 10000, CUgraph* graph, unsigned int flags) {
    require(graph != nullptr && flags == 0);
    *graph = new_handle<CUgraph>(make_graph());
}

/// Executable graphs made from it live on. A graph that belongs to a capture or to a node cannot be destroyed.
EMULATED_API(cuGraphDestroy, 10000, CUgraph handle) {
    const streams::DueDestructors due;
    check(initialised());
    const auto graph = find_object<GraphObject>(handle);
    require(graph != nullptr && !graph->embedded);
    const bool busy = Captures::get().paused([&] { return Captures::get().fills(*graph); });
    require(!busy, CUDA_ERROR_ILLEGAL_STATE);
    withdraw(*graph);
    graph->held.clear();  // events recorded in its capture may keep the rest alive
}

/// "Child graph nodes in the original graph are recursively copied into the clone."
EMULATED_DRIVER_API(cuGraphClone, 10000, CUgraph* out, CUgraph handle) {
    const auto graph = find_object<GraphObject>(handle);
    require(out != nullptr && graph != nullptr);
    std::shared_ptr<WorkGraph> made;
    Captures::get().paused([&] {
        require(!Captures::get().fills(*graph), CUDA_ERROR_ILLEGAL_STATE);
        if (has_memory(*graph) || has_conditions(*graph))
            return refuse(CUDA_ERROR_NOT_SUPPORTED,
                          "a graph with memory or conditional nodes cannot be cloned");
        made = graph->copy(true);
    });
    publish(made);
    *out = handle_of(made.get());
}

EMULATED_API(cuGraphInstantiateWithFlags, 11040, CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
    // "Only supported by cuGraphInstantiateWithParams."
    require((flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) == 0);
    return instantiate(exec, graph, flags, nullptr);
}

EMULATED_STREAM_API(cuGraphInstantiateWithParams, 12000, CUgraphExec* exec, CUgraph graph,
                    CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
    require(parameters != nullptr);
    return instantiate(exec, graph, parameters->flags, parameters);
}

// <cudaTypedefs.h> defines this type only for the driver itself (__CUDA_API_VERSION_INTERNAL).
using PFN_cuGraphInstantiate_v10000 = CUresult(CUDAAPI*)(CUgraphExec*, CUgraph, CUgraphNode*, char*,
                                                         std::size_t);

EMULATED_OLDER_API_AS(cuGraphInstantiate_v2, cuGraphInstantiate, 10000, CUgraphExec* exec, CUgraph graph,
                      CUgraphNode* error, char* log, std::size_t log_bytes) {
    CUDA_GRAPH_INSTANTIATE_PARAMS parameters = {};
    const CUresult result = cuGraphInstantiateWithParams(exec, graph, &parameters);
    if (error != nullptr) *error = parameters.hErrNode_out;
    if (log != nullptr && log_bytes > 0)
        copy_text(result == CUDA_SUCCESS ? "" : Process::get().report(), log, log_bytes);
    check(result);
}

EMULATED_API(cuGraphExecGetFlags, 12000, CUgraphExec handle, cuuint64_t* flags) {
    const auto exec = argument<GraphExecObject>(handle);
    return answer(flags, exec->flags & ~cuuint64_t{CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD});
}

/// A launch that runs is completed, and its resources are freed afterwards.
EMULATED_API(cuGraphExecDestroy, 10000, CUgraphExec handle) {
    const streams::DueDestructors due;
    check(initialised());
    require(find_object<GraphExecObject>(handle) != nullptr);
    unsafe_now("cuGraphExecDestroy");
    require(Process::get().handles().remove<GraphExecObject>(handle) != nullptr);
}

/// There is nothing to upload before a launch.
EMULATED_STREAM_API(cuGraphUpload, 11010, CUgraphExec handle, CUstream stream) {
    const auto target = find_stream(stream);
    require(find_object<GraphExecObject>(handle) != nullptr);
    const CaptureGate gate(target);
    require(!gate.captures(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

/// An executable graph cannot be launched into a capture. To make a graph part of another one, clients use
/// cuGraphAddChildGraphNode.
EMULATED_STREAM_API(cuGraphLaunch, 10000, CUgraphExec handle, CUstream stream) {
    const auto target = find_stream(stream);
    const auto exec = argument<GraphExecObject>(handle);
    const CaptureGate gate(target);
    no_capture_now(target, "cuGraphLaunch");
    trace(BASCULE_EMULATED_GRAPH_LAUNCH, stream, nullptr, 0, "cuGraphLaunch");
    const std::lock_guard lock(exec->mutex);
    refuse_outlived(exec->graph());
    const OwnOperation operation;
    begin_memory(exec->graph(), (exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0, target);
    target.context->graph.launch(*target.stream, exec->steps(), exec->lanes());
    Process::get().kernel_enqueued();
    check(operation.error());
}

EMULATED_API(cuGraphExecUpdate, 12000, CUgraphExec exec_handle, CUgraph graph_handle,
             CUgraphExecUpdateResultInfo* info) {
    const streams::DueDestructors due;
    require(info != nullptr);
    *info = {CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
    const auto exec = find_object<GraphExecObject>(exec_handle);
    const auto graph = find_object<GraphObject>(graph_handle);
    require(exec != nullptr && graph != nullptr && !graph->embedded);
    const std::lock_guard lock(exec->mutex);
    std::optional<Difference> difference;
    Captures::get().paused([&] {
        require(!Captures::get().fills(*graph), CUDA_ERROR_ILLEGAL_STATE);
        require(failure_of(*graph, false).code == CUDA_SUCCESS);
        difference = exec->update(*graph);
    });
    *info = {static_cast<CUgraphExecUpdateResult>(difference->what), handle_of(difference->node),
             handle_of(difference->from)};
    require(difference->what == Difference::What::none, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
}

/// Before CUDA 12 it did not return the dependency that differs.
EMULATED_OLDER_API(cuGraphExecUpdate, 10020, CUgraphExec exec, CUgraph graph, CUgraphNode* error,
                   CUgraphExecUpdateResult* result) {
    CUgraphExecUpdateResultInfo info = {};
    const CUresult code = cuGraphExecUpdate_v2(exec, graph, &info);
    if (error != nullptr) *error = info.errorNode;
    if (result != nullptr) *result = info.result;
    check(code);
}

}  // namespace emulated::driver
