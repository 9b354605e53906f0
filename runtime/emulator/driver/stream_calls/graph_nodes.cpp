// Nodes added by calls. One row per kind says how a node is made from its parameters, and whether they can change.
#include "driver/graph_nodes.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include "driver/interruption.hpp"

namespace emulated::driver {
using streams::Captures;
using streams::Condition;
using streams::Dependency;
using streams::WorkGraph;
using streams::WorkNode;

void make_node(WorkNode& node, const Context& context, NodeParameters parameters,
               std::function<void()> work) {
    node.kind = static_cast<WorkNode::Kind>(parameters.values.type);
    node.context = &context;
    node.resets = Process::resets();
    node.announced = races::Detector::take_announcement();
    node.details = std::make_shared<const NodeParameters>(std::move(parameters));
    if (work) node.work = std::make_shared<const std::function<void()>>(std::move(work));
}

/// The work of a host node. The function is not called after a fault, as documented.
std::function<void()> host_work(CUhostFn function, void* data, const Context& context) {
    return [function, data, &context, resets = resets_before_call()] {
        const streams::DriverLock lock;
        if (context.executes(resets)) function(data);
    };
}

CUresult make_host_node(WorkNode& node, CUhostFn function, void* data, Context& context) {
    EMULATED_REQUIRE(function != nullptr, CUDA_ERROR_INVALID_VALUE);
    NodeParameters parameters(CU_GRAPH_NODE_TYPE_HOST);
    parameters.values.host.fn = function;
    parameters.values.host.userData = data;
    make_node(node, context, std::move(parameters), host_work(function, data, context));
    return CUDA_SUCCESS;
}

CUresult make_event_node(WorkNode& node, WorkNode::Kind kind, CUevent handle) {
    const auto event = find_object<Event>(handle);
    EMULATED_REQUIRE(event != nullptr, CUDA_ERROR_INVALID_HANDLE);
    if (event->shared != nullptr)
        return refuse(CUDA_ERROR_NOT_SUPPORTED, "a graph has no nodes of events that other processes use");
    node.event = std::shared_ptr<streams::Event>(event, &event->event);
    NodeParameters parameters(static_cast<CUgraphNodeType>(kind));
    parameters.values.eventWait.event =
        handle;  // also valid for a record node: all members of the union have the same address
    make_node(node, *event->context, std::move(parameters));
    node.context = nullptr;  // an update may replace it by any other event
    return CUDA_SUCCESS;
}

void make_child_node(WorkNode& node, std::shared_ptr<WorkGraph> child, const Context& context) {
    child->embedded = true;
    NodeParameters parameters(CU_GRAPH_NODE_TYPE_GRAPH);
    node.children = {std::move(child)};
    make_node(node, context, std::move(parameters));
    node.context = nullptr;
}

namespace {

/// The input from which a row makes a node.
struct Making {
    WorkNode& node;
    CUgraphNodeParams& values;
    WorkGraph& graph;
    const NodeParameters* before;  ///< the parameters that are replaced; null for a new node
};

/// Looks up the context that the client names, or the current one.
CUresult find_alive(Context*& found, CUcontext handle, CUcontext otherwise = nullptr) {
    if (handle == nullptr) handle = otherwise;
    found = handle == nullptr ? current_context() : find_context(handle);
    return state_of(found);
}

CUresult make_kernel(const Making& making) {
    const CUDA_KERNEL_NODE_PARAMS_v3& given = making.values.kernel;
    const auto function = given.func != nullptr ? given.func : reinterpret_cast<CUfunction>(given.kern);
    EMULATED_REQUIRE(function != nullptr, CUDA_ERROR_INVALID_VALUE);
    EMULATED_FIND(handle, find_object<KernelHandle>(function));
    Context* context = handle->context;
    if (context == nullptr) EMULATED_CHECK(find_alive(context, given.func == nullptr ? given.ctx : nullptr));
    std::vector<CUlaunchAttribute> attributes;
    if (making.before != nullptr) attributes = making.before->attributes;
    const CUlaunchConfig config{given.gridDimX,
                                given.gridDimY,
                                given.gridDimZ,
                                given.blockDimX,
                                given.blockDimY,
                                given.blockDimZ,
                                given.sharedMemBytes,
                                nullptr,
                                attributes.empty() ? nullptr : attributes.data(),
                                static_cast<unsigned>(attributes.size())};
    return make_kernel_node(making.node, config, function, *context, given.kernelParams, given.extra);
}

CUresult make_copy(const Making& making) {
    const CUDA_MEMCPY_NODE_PARAMS& given = making.values.memcpy;
    Context* context = nullptr;
    EMULATED_REQUIRE(given.flags == 0 && given.reserved == 0, CUDA_ERROR_INVALID_VALUE);
    const CUcontext before = making.before != nullptr ? making.before->values.memcpy.copyCtx : nullptr;
    EMULATED_CHECK(find_alive(context, given.copyCtx, before));
    return make_copy_node(making.node, given.copyParams, *context);
}

CUresult make_fill(const Making& making) {
    Context* context = nullptr;
    const CUcontext before = making.before != nullptr ? making.before->values.memset.ctx : nullptr;
    EMULATED_CHECK(find_alive(context, making.values.memset.ctx, before));
    return make_fill_node(making.node, making.values.memset, *context);
}

CUresult make_host(const Making& making) {
    Context* context = nullptr;
    EMULATED_CHECK(find_alive(context, nullptr));
    return make_host_node(making.node, making.values.host.fn, making.values.host.userData, *context);
}

CUresult make_child(const Making& making) {
    const CUDA_CHILD_GRAPH_NODE_PARAMS& given = making.values.graph;
    const auto source = find_object<GraphObject>(given.graph);
    const bool moves = given.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    EMULATED_REQUIRE(source != nullptr && given.ownership <= CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE,
                     CUDA_ERROR_INVALID_VALUE);
    EMULATED_REQUIRE(!moves || (!source->embedded && source.get() != &making.graph),
                     CUDA_ERROR_INVALID_VALUE);
    Context* context = nullptr;
    EMULATED_CHECK(find_alive(context, nullptr));
    std::shared_ptr<WorkGraph> child;
    EMULATED_CHECK(Captures::get().paused([&]() -> CUresult {
        EMULATED_REQUIRE(!Captures::get().fills(*source), CUDA_ERROR_ILLEGAL_STATE);
        if (has_conditions(*source) || (has_memory(*source) && !moves))
            return refuse(
                CUDA_ERROR_NOT_SUPPORTED,
                "a graph with conditional nodes cannot be a child graph, and one with memory nodes can only be "
                "moved into its parent (CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)");
        child = moves ? source : source->copy(true);
        return CUDA_SUCCESS;
    }));
    make_child_node(making.node, std::move(child), *context);
    return CUDA_SUCCESS;
}

CUresult make_empty(const Making& making) {
    making.node.kind = WorkNode::Kind::empty;
    making.node.resets = Process::resets();
    return CUDA_SUCCESS;
}

CUresult make_event(const Making& making) {
    const auto kind = static_cast<WorkNode::Kind>(making.values.type);
    return make_event_node(making.node, kind, making.values.eventWait.event);
}

CUresult make_allocation(const Making& making) {
    Context* context = nullptr;
    EMULATED_CHECK(find_alive(context, nullptr));
    return make_allocation_node(making.node, making.values.alloc, *context, making.graph);
}

CUresult make_free(const Making& making) {
    Context* context = nullptr;
    EMULATED_CHECK(find_alive(context, nullptr));
    return make_free_node(making.node, making.values.free.dptr, *context, making.graph);
}

/// "Allowed values are 1 for WHILE, 1 or 2 for IF, or any value greater than zero for SWITCH."
bool has_valid_size(const CUDA_CONDITIONAL_NODE_PARAMS& given) noexcept {
    switch (given.type) {
        case CU_GRAPH_COND_TYPE_IF:
            return given.size == 1 || given.size == 2;
        case CU_GRAPH_COND_TYPE_WHILE:
            return given.size == 1;
        case CU_GRAPH_COND_TYPE_SWITCH:
            return given.size >= 1;
    }
    return false;
}

/// "The conditional handle must be associated with a conditional node in this graph or one of its children." Returns null
/// if it belongs to another graph.
std::shared_ptr<Condition> find_condition(const WorkGraph& graph, CUgraphConditionalHandle handle) {
    const auto found = std::ranges::find(graph.conditions, handle, &Condition::handle);
    if (found != graph.conditions.end()) return *found;
    const auto around = graph.around.lock();
    return around == nullptr ? nullptr : find_condition(*around, handle);
}

CUresult make_conditional(const Making& making) {
    CUDA_CONDITIONAL_NODE_PARAMS& given = making.values.conditional;
    const auto condition = find_condition(making.graph, given.handle);
    EMULATED_REQUIRE(condition != nullptr && !condition->has_node && has_valid_size(given),
                     CUDA_ERROR_INVALID_VALUE);
    Context* context = nullptr;
    EMULATED_CHECK(find_alive(context, given.ctx));
    EMULATED_REQUIRE(condition->context == context, CUDA_ERROR_INVALID_VALUE);
    WorkNode& node = making.node;
    node.condition = condition;
    node.choice = static_cast<WorkNode::Choice>(given.type);
    NodeParameters parameters(CU_GRAPH_NODE_TYPE_CONDITIONAL);
    for (unsigned i = 0; i < given.size; ++i) {
        auto body = make_graph();
        body->embedded = true;
        body->around = making.graph.weak_from_this();
        parameters.bodies.push_back(handle_of(body.get()));
        node.children.push_back(std::move(body));
    }
    given.phGraph_out = parameters.bodies.data();
    given.ctx = reinterpret_cast<CUcontext>(context);
    parameters.values.conditional = given;
    make_node(node, *context, std::move(parameters));
    node.condition->has_node = true;
    return CUDA_SUCCESS;
}

struct NodeKind {
    CUgraphNodeType type;
    CUresult (*make)(const Making& making);
    bool changes;  ///< true if parameters can be replaced
};
constexpr NodeKind kinds[] = {
    {CU_GRAPH_NODE_TYPE_KERNEL, make_kernel, true},
    {CU_GRAPH_NODE_TYPE_MEMCPY, make_copy, true},
    {CU_GRAPH_NODE_TYPE_MEMSET, make_fill, true},
    {CU_GRAPH_NODE_TYPE_HOST, make_host, true},
    {CU_GRAPH_NODE_TYPE_GRAPH, make_child, true},
    {CU_GRAPH_NODE_TYPE_EMPTY, make_empty, false},
    {CU_GRAPH_NODE_TYPE_WAIT_EVENT, make_event, true},
    {CU_GRAPH_NODE_TYPE_EVENT_RECORD, make_event, true},
    {CU_GRAPH_NODE_TYPE_MEM_ALLOC, make_allocation, false},
    {CU_GRAPH_NODE_TYPE_MEM_FREE, make_free, false},
    {CU_GRAPH_NODE_TYPE_CONDITIONAL, make_conditional, false},
};

CUresult find_kind(const NodeKind*& row, const CUgraphNodeParams& values) {
    int type = 0;
    std::memcpy(&type, &values.type, sizeof type);
    row = find_row(kinds, &NodeKind::type, type);
    if (row != nullptr) return CUDA_SUCCESS;
    EMULATED_REQUIRE(type >= 0 && type <= CU_GRAPH_NODE_TYPE_CONDITIONAL, CUDA_ERROR_INVALID_VALUE);
    return refuse(
        CUDA_ERROR_NOT_SUPPORTED,
        "the emulated device has no nodes of external semaphores and none of batched memory operations");
}

/// Makes a node that will replace `old`; its parameters so far are `before`.
CUresult make_instead(WorkNode& made, CUgraphNodeParams& values, WorkGraph& graph, const WorkNode& old,
                      const NodeParameters* before) {
    EMULATED_REQUIRE(static_cast<int>(values.type) == static_cast<int>(old.kind), CUDA_ERROR_INVALID_VALUE);
    const NodeKind* row = nullptr;
    EMULATED_CHECK(find_kind(row, values));
    EMULATED_REQUIRE(row->changes, CUDA_ERROR_NOT_SUPPORTED);
    return row->make({made, values, graph, before});
}

/// Calls `use(exec, node, found)` with the node of an executable graph that corresponds to a client's node.
template <class Use>
CUresult with_exec_node(CUgraphExec exec_handle, CUgraphNode handle, const Use& use) {
    const auto exec = find_object<GraphExecObject>(exec_handle);
    const FoundNode found(handle);
    EMULATED_REQUIRE(exec != nullptr && found, CUDA_ERROR_INVALID_VALUE);
    const std::lock_guard lock(exec->mutex);
    WorkNode* node = exec->made_from(*found.node);
    EMULATED_REQUIRE(node != nullptr, CUDA_ERROR_INVALID_VALUE);
    return use(*exec, *node, found);
}

}  // namespace

CUresult add_node(CUgraphNode* out, CUgraph handle, const GivenEdges& edges, CUgraphNodeParams& values) {
    EMULATED_CHECK(initialised());
    const auto graph = find_object<GraphObject>(handle);
    EMULATED_REQUIRE(out != nullptr && graph != nullptr, CUDA_ERROR_INVALID_VALUE);
    const NodeKind* row = nullptr;
    EMULATED_CHECK(find_kind(row, values));
    EMULATED_REQUIRE(nodes_of(*graph, edges.from, edges.count).has_value(), CUDA_ERROR_INVALID_VALUE);
    auto node = std::make_shared<WorkNode>();
    node->kind = static_cast<WorkNode::Kind>(values.type);
    const auto connect = [&]() -> CUresult {
        const auto before = nodes_of(*graph, edges.from, edges.count);
        EMULATED_REQUIRE(before.has_value(), CUDA_ERROR_INVALID_VALUE);
        node->after.clear();
        for (std::size_t i = 0; i < before->size(); ++i) {
            const auto kind =
                edge_kind(edges.data == nullptr ? nullptr : &edges.data[i], *(*before)[i], *node);
            EMULATED_REQUIRE(kind.has_value(), CUDA_ERROR_INVALID_VALUE);
            node->after.push_back({(*before)[i], *kind});
        }
        return CUDA_SUCCESS;
    };
    EMULATED_CHECK(Captures::get().paused(connect));  // checked before anything is made
    EMULATED_CHECK(row->make({*node, values, *graph, nullptr}));
    EMULATED_CHECK(Captures::get().paused([&]() -> CUresult {
        EMULATED_CHECK(connect());
        graph->add(node);
        return CUDA_SUCCESS;
    }));
    for (const auto& child : node->children) publish(child);
    *out = handle_of(node.get());
    return CUDA_SUCCESS;
}

CUresult set_node(CUgraphNode handle, CUgraphNodeParams& values, const NodeParameters* before) {
    const streams::DueDestructors due;
    const FoundNode found(handle);
    EMULATED_REQUIRE(found, CUDA_ERROR_INVALID_VALUE);
    WorkNode made;
    if (before == nullptr) before = parameters_of(*found.node);
    EMULATED_CHECK(make_instead(made, values, *found.graph, *found.node, before));
    auto children = made.children;
    Captures::get().paused([&] {
        std::swap(children, found.node->children);
        found.node->become(made);
    });
    for (const auto& child : children) withdraw(*child);
    for (const auto& child : made.children) publish(child);
    return CUDA_SUCCESS;
}

CUresult set_exec_node(CUgraphExec exec_handle, CUgraphNode handle, CUgraphNodeParams& values) {
    const streams::DueDestructors due;
    return with_exec_node(exec_handle, handle, [&](auto& exec, WorkNode& node, const FoundNode& found) {
        const bool moves = values.type == CU_GRAPH_NODE_TYPE_GRAPH &&
                           values.graph.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE;
        EMULATED_REQUIRE(!moves, CUDA_ERROR_INVALID_VALUE);
        WorkNode made;
        EMULATED_CHECK(make_instead(made, values, *found.graph, node, parameters_of(node)));
        using What = streams::ExecutableGraph::Difference::What;
        return exec.update(node, made) == What::none ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    });
}

CUresult get_node(std::shared_ptr<const NodeParameters>& out, CUgraphNode handle, CUgraphNodeType type) {
    const FoundNode found(handle);
    EMULATED_REQUIRE(found && static_cast<int>(found.node->kind) == static_cast<int>(type),
                     CUDA_ERROR_INVALID_VALUE);
    out = Captures::get().paused(
        [&] { return std::static_pointer_cast<const NodeParameters>(found.node->details); });
    return out == nullptr ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

EMULATED_API(cuGraphAddNode, 12030, CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
             const CUgraphEdgeData* data, std::size_t count, CUgraphNodeParams* values) {
    EMULATED_REQUIRE(values != nullptr, CUDA_ERROR_INVALID_VALUE);
    return add_node(out, graph, {before, data, count}, *values);
}

EMULATED_API(cuGraphNodeSetParams, 12020, CUgraphNode node, CUgraphNodeParams* values) {
    EMULATED_REQUIRE(values != nullptr, CUDA_ERROR_INVALID_VALUE);
    return set_node(node, *values);
}

EMULATED_API(cuGraphExecNodeSetParams, 12020, CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* values) {
    EMULATED_REQUIRE(values != nullptr, CUDA_ERROR_INVALID_VALUE);
    return set_exec_node(exec, node, *values);
}

/// "Only kernel, memset and memcpy nodes are currently supported."
EMULATED_API(cuGraphNodeSetEnabled, 11060, CUgraphExec exec_handle, CUgraphNode handle,
             unsigned int enabled) {
    return with_exec_node(exec_handle, handle, [&](auto& exec, WorkNode& node, const FoundNode&) {
        EMULATED_REQUIRE(node.kind <= WorkNode::Kind::fill, CUDA_ERROR_INVALID_VALUE);
        exec.enable(node, enabled != 0);
        return CUDA_SUCCESS;
    });
}

EMULATED_API(cuGraphNodeGetEnabled, 11060, CUgraphExec exec_handle, CUgraphNode handle,
             unsigned int* enabled) {
    return with_exec_node(exec_handle, handle, [&](auto&, const WorkNode& node, const FoundNode&) {
        EMULATED_REQUIRE(node.kind <= WorkNode::Kind::fill, CUDA_ERROR_INVALID_VALUE);
        return answer(enabled, node.enabled ? 1U : 0U);
    });
}

EMULATED_API(cuGraphConditionalHandleCreate, 12030, CUgraphConditionalHandle* out, CUgraph handle,
             CUcontext context_handle, unsigned int value, unsigned int flags) {
    const auto graph = find_object<GraphObject>(handle);
    EMULATED_REQUIRE(out != nullptr && graph != nullptr && (flags & ~CU_GRAPH_COND_ASSIGN_DEFAULT) == 0,
                     CUDA_ERROR_INVALID_VALUE);
    Context* context = nullptr;
    EMULATED_CHECK(find_alive(context, context_handle));
    auto condition = Condition::make();
    condition->context = context;
    if ((flags & CU_GRAPH_COND_ASSIGN_DEFAULT) != 0) condition->at_launch = value;
    condition->goes_on = [context] {
        return context->error.load(std::memory_order_relaxed) == CUDA_SUCCESS && !interrupted();
    };
    *out = condition->handle;
    Captures::get().paused([&] { graph->conditions.push_back(std::move(condition)); });
    return CUDA_SUCCESS;
}

}  // namespace emulated::driver
