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

/// The work of a host node or of cuLaunchHostFunc. The function is not called after a fault, as documented.
std::function<void()> host_work(CUhostFn function, void* data, const Context& context) {
    return [function, data, &context, resets = resets_before_call()] {
        const streams::DriverLock lock;
        if (context.executes(resets)) function(data);
    };
}

void make_host_node(WorkNode& node, CUhostFn function, void* data, Context& context) {
    require(function != nullptr);
    NodeParameters parameters(CU_GRAPH_NODE_TYPE_HOST);
    parameters.values.host.fn = function;
    parameters.values.host.userData = data;
    make_node(node, context, std::move(parameters), host_work(function, data, context));
}

void make_event_node(WorkNode& node, WorkNode::Kind kind, CUevent handle) {
    const auto event = object_of<Event>(handle);
    if (event->shared != nullptr)
        return refuse(CUDA_ERROR_NOT_SUPPORTED, "a graph has no nodes of events that other processes use");
    node.event = std::shared_ptr<streams::Event>(event, &event->event);
    NodeParameters parameters(static_cast<CUgraphNodeType>(kind));
    parameters.values.eventWait.event =
        handle;  // also valid for a record node: all members of the union have the same address
    make_node(node, *event->context, std::move(parameters));
    node.context = nullptr;  // an update may replace it by any other event
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

/// Looks up the context that the client names, or else `otherwise`, or else the current one.
Context& find_alive(CUcontext handle = nullptr, CUcontext otherwise = nullptr) {
    if (handle == nullptr) handle = otherwise;
    Context* found = handle == nullptr ? current_context() : find_context(handle);
    check(state_of(found));
    return *found;
}

void make_kernel(const Making& making) {
    const CUDA_KERNEL_NODE_PARAMS_v3& given = making.values.kernel;
    const auto function = given.func != nullptr ? given.func : reinterpret_cast<CUfunction>(given.kern);
    require(function != nullptr);
    const auto handle = object_of<KernelHandle>(function);
    Context* context = handle->context;
    if (context == nullptr) context = &find_alive(given.func == nullptr ? given.ctx : nullptr);
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

void make_copy(const Making& making) {
    const CUDA_MEMCPY_NODE_PARAMS& given = making.values.memcpy;
    require(given.flags == 0 && given.reserved == 0);
    const CUcontext before = making.before != nullptr ? making.before->values.memcpy.copyCtx : nullptr;
    make_copy_node(making.node, given.copyParams, find_alive(given.copyCtx, before));
}

void make_fill(const Making& making) {
    const CUcontext before = making.before != nullptr ? making.before->values.memset.ctx : nullptr;
    make_fill_node(making.node, making.values.memset, find_alive(making.values.memset.ctx, before));
}

void make_host(const Making& making) {
    make_host_node(making.node, making.values.host.fn, making.values.host.userData, find_alive());
}

void make_child(const Making& making) {
    const CUDA_CHILD_GRAPH_NODE_PARAMS& given = making.values.graph;
    const auto source = find_object<GraphObject>(given.graph);
    const bool moves = given.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    require(source != nullptr && given.ownership <= CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE);
    require(!moves || (!source->embedded && source.get() != &making.graph));
    Context& context = find_alive();
    std::shared_ptr<WorkGraph> child;
    Captures::get().paused([&] {
        require(!Captures::get().fills(*source), CUDA_ERROR_ILLEGAL_STATE);
        if (has_conditions(*source) || (has_memory(*source) && !moves))
            return refuse(
                CUDA_ERROR_NOT_SUPPORTED,
                "a graph with conditional nodes cannot be a child graph, and one with memory nodes can only be "
                "moved into its parent (CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)");
        child = moves ? source : source->copy(true);
    });
    make_child_node(making.node, std::move(child), context);
}

void make_empty(const Making& making) {
    making.node.kind = WorkNode::Kind::empty;
    making.node.resets = Process::resets();
}

void make_event(const Making& making) {
    const auto kind = static_cast<WorkNode::Kind>(making.values.type);
    return make_event_node(making.node, kind, making.values.eventWait.event);
}

void make_allocation(const Making& making) {
    make_allocation_node(making.node, making.values.alloc, find_alive(), making.graph);
}

void make_free(const Making& making) {
    make_free_node(making.node, making.values.free.dptr, find_alive(), making.graph);
}

/// "Allowed values are 1 for WHILE, 1 or 2 for IF, or any value greater than zero for SWITCH."
bool has_valid_size(const CUDA_CONDITIONAL_NODE_PARAMS& given) noexcept {
    if (given.type == CU_GRAPH_COND_TYPE_IF) return given.size == 1 || given.size == 2;
    if (given.type == CU_GRAPH_COND_TYPE_WHILE) return given.size == 1;
    return given.type == CU_GRAPH_COND_TYPE_SWITCH && given.size >= 1;
}

/// "The conditional handle must be associated with a conditional node in this graph or one of its children." Returns null
/// if it belongs to another graph.
std::shared_ptr<Condition> find_condition(const WorkGraph& graph, CUgraphConditionalHandle handle) {
    const auto found = std::ranges::find(graph.conditions, handle, &Condition::handle);
    if (found != graph.conditions.end()) return *found;
    const auto around = graph.around.lock();
    return around == nullptr ? nullptr : find_condition(*around, handle);
}

void make_conditional(const Making& making) {
    CUDA_CONDITIONAL_NODE_PARAMS& given = making.values.conditional;
    const auto condition = find_condition(making.graph, given.handle);
    require(condition != nullptr && !condition->has_node && has_valid_size(given));
    Context& context = find_alive(given.ctx);
    require(condition->context == &context);
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
    given.ctx = reinterpret_cast<CUcontext>(&context);
    parameters.values.conditional = given;
    make_node(node, context, std::move(parameters));
    node.condition->has_node = true;
}

struct NodeKind {
    CUgraphNodeType type;
    void (*make)(const Making& making);
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

const NodeKind& kind_named(const CUgraphNodeParams& values) {
    int type = 0;
    std::memcpy(&type, &values.type, sizeof type);
    if (const NodeKind* row = find_row(kinds, &NodeKind::type, type)) return *row;
    require(type >= 0 && type <= CU_GRAPH_NODE_TYPE_CONDITIONAL);
    refuse(CUDA_ERROR_NOT_SUPPORTED,
           "the emulated device has no nodes of external semaphores and none of batched memory operations");
}

/// Makes a node that will replace `old`; its parameters so far are `before`.
void make_instead(WorkNode& made, CUgraphNodeParams& values, WorkGraph& graph, const WorkNode& old,
                  const NodeParameters* before) {
    require(static_cast<int>(values.type) == static_cast<int>(old.kind));
    const NodeKind& row = kind_named(values);
    require(row.changes, CUDA_ERROR_NOT_SUPPORTED);
    row.make({made, values, graph, before});
}

/// Calls `use(exec, node, found)` with the node of an executable graph that corresponds to a client's node.
template <class Use>
void with_exec_node(CUgraphExec exec_handle, CUgraphNode handle, const Use& use) {
    const auto exec = find_object<GraphExecObject>(exec_handle);
    const FoundNode found(handle);
    require(exec != nullptr && found);
    const std::lock_guard lock(exec->mutex);
    WorkNode* node = exec->made_from(*found.node);
    require(node != nullptr);
    return use(*exec, *node, found);
}

}  // namespace

void add_node(CUgraphNode* out, CUgraph handle, const GivenEdges& edges, CUgraphNodeParams& values) {
    check(initialised());
    const auto graph = find_object<GraphObject>(handle);
    require(out != nullptr && graph != nullptr);
    const NodeKind& row = kind_named(values);
    auto node = std::make_shared<WorkNode>();
    node->kind = static_cast<WorkNode::Kind>(values.type);
    const auto connect = [&] {
        const std::vector<WorkNode*> before = nodes_of(*graph, edges.from, edges.count);
        node->after.clear();
        for (std::size_t i = 0; i < before.size(); ++i) {
            const CUgraphEdgeData* data = edges.data == nullptr ? nullptr : &edges.data[i];
            node->after.push_back({before[i], edge_kind(data, *before[i], *node)});
        }
    };
    Captures::get().paused(connect);  // checked before anything is made
    row.make({*node, values, *graph, nullptr});
    Captures::get().paused([&] {
        connect();
        graph->add(node);
    });
    for (const auto& child : node->children) publish(child);
    *out = handle_of(node.get());
}

void set_node(CUgraphNode handle, CUgraphNodeParams& values, const NodeParameters* before) {
    const streams::DueDestructors due;
    const FoundNode found(handle);
    require(found);
    WorkNode made;
    if (before == nullptr) before = parameters_of(*found.node);
    make_instead(made, values, *found.graph, *found.node, before);
    auto children = made.children;
    Captures::get().paused([&] {
        std::swap(children, found.node->children);
        found.node->become(made);
    });
    for (const auto& child : children) withdraw(*child);
    for (const auto& child : made.children) publish(child);
}

void set_exec_node(CUgraphExec exec_handle, CUgraphNode handle, CUgraphNodeParams& values) {
    const streams::DueDestructors due;
    return with_exec_node(exec_handle, handle, [&](auto& exec, WorkNode& node, const FoundNode& found) {
        const bool moves = values.type == CU_GRAPH_NODE_TYPE_GRAPH &&
                           values.graph.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE;
        require(!moves);
        WorkNode made;
        make_instead(made, values, *found.graph, node, parameters_of(node));
        using What = streams::ExecutableGraph::Difference::What;
        require(exec.update(node, made) == What::none);
    });
}

std::shared_ptr<const NodeParameters> get_node(CUgraphNode handle, CUgraphNodeType type) {
    const FoundNode found(handle);
    require(found && static_cast<int>(found.node->kind) == static_cast<int>(type));
    auto parameters = Captures::get().paused(
        [&] { return std::static_pointer_cast<const NodeParameters>(found.node->details); });
    require(parameters != nullptr, CUDA_ERROR_NOT_SUPPORTED);
    return parameters;
}

EMULATED_API(cuGraphAddNode, 12030, CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
             const CUgraphEdgeData* data, std::size_t count, CUgraphNodeParams* values) {
    require(values != nullptr);
    return add_node(out, graph, {before, data, count}, *values);
}

EMULATED_API(cuGraphNodeSetParams, 12020, CUgraphNode node, CUgraphNodeParams* values) {
    require(values != nullptr);
    return set_node(node, *values);
}

EMULATED_API(cuGraphExecNodeSetParams, 12020, CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* values) {
    require(values != nullptr);
    return set_exec_node(exec, node, *values);
}

/// "Currently only kernel, memset and memcpy nodes are supported."
EMULATED_API(cuGraphNodeSetEnabled, 11060, CUgraphExec exec_handle, CUgraphNode handle,
             unsigned int enabled) {
    return with_exec_node(exec_handle, handle, [&](auto& exec, WorkNode& node, const FoundNode&) {
        require(node.kind <= WorkNode::Kind::fill);
        exec.enable(node, enabled != 0);
    });
}

EMULATED_API(cuGraphNodeGetEnabled, 11060, CUgraphExec exec_handle, CUgraphNode handle,
             unsigned int* enabled) {
    return with_exec_node(exec_handle, handle, [&](auto&, const WorkNode& node, const FoundNode&) {
        require(node.kind <= WorkNode::Kind::fill);
        return answer(enabled, node.enabled ? 1U : 0U);
    });
}

EMULATED_API(cuGraphConditionalHandleCreate, 12030, CUgraphConditionalHandle* out, CUgraph handle,
             CUcontext context_handle, unsigned int value, unsigned int flags) {
    const auto graph = find_object<GraphObject>(handle);
    require(out != nullptr && graph != nullptr && (flags & ~CU_GRAPH_COND_ASSIGN_DEFAULT) == 0);
    Context& context = find_alive(context_handle);
    auto condition = Condition::make();
    condition->context = &context;
    if ((flags & CU_GRAPH_COND_ASSIGN_DEFAULT) != 0) condition->at_launch = value;
    condition->goes_on = [&context] {
        return context.error.load(std::memory_order_relaxed) == CUDA_SUCCESS && !interrupted();
    };
    *out = condition->handle;
    Captures::get().paused([&] { graph->conditions.push_back(std::move(condition)); });
}

}  // namespace emulated::driver
