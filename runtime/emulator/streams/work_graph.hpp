// A graph of operations, captured or built by calls, and its executable form.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "streams/graph.hpp"
#include "streams/user_object.hpp"

namespace emulated::streams {

struct WorkGraph;
struct WorkNode;

/// The kind of an edge, as in CUgraphEdgeData. Zeros: a full dependency. All edges are treated as full
/// dependencies, because an overlap that an edge allows is not required.
struct EdgeKind {
    std::uint8_t from_port = 0, to_port = 0, type = 0;
    bool operator==(const EdgeKind&) const = default;
};

/// An edge, as stored in the node that it leads to.
struct Dependency {
    WorkNode* node = nullptr;
    EdgeKind kind{};
};

/// The value on which a conditional node depends.
struct Condition {
    /// Makes a condition with a new handle.
    static std::shared_ptr<Condition> make();
    /// Implements cudaGraphSetConditional. Returns false if no live condition has this handle.
    static bool set(std::uint64_t handle, unsigned value);
    ~Condition();

    std::uint64_t handle = 0;
    const void* context = nullptr;
    std::optional<unsigned> at_launch;  ///< the value that a launch of the graph sets
    std::function<bool()> goes_on;      ///< whether a loop may run again
    std::atomic<unsigned> value{0};
    bool has_node = false;
};

/// Further data of a node from its maker. Immutable once attached to a node.
struct NodeDetails {
    virtual ~NodeDetails() = default;
};

/// The operation of a node, independent of its place in a graph.
struct NodeWork {
    /// The values are those of CUgraphNodeType.
    enum class Kind : std::uint8_t {
        kernel = 0,
        copy = 1,
        fill = 2,
        host = 3,
        graph = 4,
        empty = 5,
        wait = 6,
        record = 7,
        allocate = 10,
        free = 11,
        conditional = 13,
    };
    /// The kind of a conditional node, as in CUgraphConditionalNodeType.
    enum class Choice : std::uint8_t { one_if, repeat_while, one_of };

    Kind kind = Kind::empty;
    // Properties that an update of an executable graph cannot change, except for `resets`.
    const void* context = nullptr;
    std::uint64_t attributes = 0;
    std::uint64_t resets = 0;  ///< device resets before it was made
    std::array<std::uint64_t, 8> operands{};

    SharedWork work;               ///< null if the node does nothing by itself
    std::shared_ptr<Event> event;  ///< for wait and record nodes
    std::vector<std::shared_ptr<WorkGraph>>
        children;  ///< the graph of a child graph node; the bodies of a conditional node
    std::shared_ptr<Condition> condition;
    Choice choice = Choice::one_if;
    std::shared_ptr<const NodeDetails> details;  ///< may be null

    bool is_memory() const noexcept { return kind == Kind::allocate || kind == Kind::free; }
};

/// A node of a graph: an operation and its dependencies.
struct WorkNode : NodeWork {
    races::Announcement announced;  ///< for the search for races
    std::vector<Dependency> after;  ///< nodes of the same graph, each once
    WorkGraph* graph = nullptr;     ///< the graph that contains it
    std::uint64_t id = 0;           ///< never reused
    std::uint64_t origin = 0;       ///< id of the node that it was copied from; 0: none
    bool enabled = true;            ///< false only in an executable graph: the node does nothing

    bool comes_after(const WorkNode* other) const noexcept;
    void become(const NodeWork& other) { NodeWork::operator=(other); }
};

/// Nodes and their dependencies. Clients' graphs are changed only with captures paused (Captures::paused).
struct WorkGraph : std::enable_shared_from_this<WorkGraph> {
    std::vector<std::shared_ptr<WorkNode>> nodes;
    std::vector<HeldObject> held;
    std::vector<std::shared_ptr<Condition>> conditions;
    std::weak_ptr<WorkGraph> around;  ///< for a body of a conditional node: the graph that contains the node
    bool embedded = false;            ///< owned by a node, which destroys it
    bool is_client = false;           ///< has a handle: its nodes are found by their handles
    std::uint64_t id = 0;
    /// For a graph with memory or conditional nodes: its executable graph, of which there can be only one at a time.
    std::weak_ptr<const void> instance;

    WorkGraph();
    ~WorkGraph();
    WorkGraph(WorkGraph&&) = delete;

    /// Looks up a client's node handle. Returns its graph, which keeps the node alive; null if the handle is invalid.
    static std::shared_ptr<WorkGraph> of(const WorkNode* node);

    /// The graph owns the node from now on.
    void add(std::shared_ptr<WorkNode> node);
    /// Removes a node and its edges.
    void remove(const WorkNode* node);
    /// A copy of all nodes with references of its own. It shares the work, events and conditions of nodes with this
    /// graph.
    std::shared_ptr<WorkGraph> copy(bool for_client) const;
    /// The nodes in topological order; nothing if there is a cycle.
    std::optional<std::vector<WorkNode*>> in_order() const;
    /// Nodes that no other node follows.
    std::vector<WorkNode*> ends() const;
    /// A node for which `wanted(node)` is true, in this graph or child graphs; null if there is none.
    template <class Wanted>
    WorkNode* find(const Wanted& wanted) const {
        for (const auto& node : nodes) {
            if (wanted(*node)) return node.get();
            for (const auto& child : node->children) {
                if (WorkNode* found = child->find(wanted)) return found;
            }
        }
        return nullptr;
    }
};

/// A graph that can be launched any number of times. Not thread-safe: its users lock `mutex`.
class ExecutableGraph {
  public:
    /// `graph` must have no cycles.
    explicit ExecutableGraph(const WorkGraph& graph) { take(graph); }

    struct Difference {
        /// The values are those of CUgraphExecUpdateResult.
        enum class What : std::uint8_t {
            none = 0,
            topology = 2,
            kind = 3,
            parameters = 5,
            function = 7,
            attributes = 8,
        };
        What what = What::none;
        const WorkNode* node = nullptr;  ///< in the new graph
        const WorkNode* from = nullptr;  ///< the dependency that differs
    };
    /// Replaces the operations by those of `graph`, if it has the same topology. Earlier launches are not affected.
    Difference update(const WorkGraph& graph);
    /// The node that was copied from `node`, or null.
    WorkNode* made_from(const WorkNode& node) const;
    /// Replaces the operation of `node`, which belongs to this graph, by that of `now`, unless an update cannot do that.
    Difference::What update(WorkNode& node, const WorkNode& now);
    void enable(WorkNode& node, bool enabled);

    const WorkGraph& graph() const noexcept { return *graph_; }
    std::span<const Step> steps() const noexcept { return steps_; }
    Lanes& lanes() noexcept { return lanes_; }

    std::mutex mutex;

  private:
    void take(const WorkGraph& graph);
    void flatten();

    std::shared_ptr<WorkGraph> graph_;  // kept by running launches
    std::vector<Step> steps_;
    Lanes lanes_;
};

}  // namespace emulated::streams
