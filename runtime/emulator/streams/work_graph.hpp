// A graph of operations, captured or made by hand, and what a launch of it is made of.
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

/// How an edge leaves one node and enters another, as CUgraphEdgeData has it. Zeros: the second comes after all of the
/// first. Whatever it allows to overlap does not have to.
struct EdgeKind {
    std::uint8_t from_port = 0, to_port = 0, type = 0;
    bool operator==(const EdgeKind&) const = default;
};

/// An edge, as the node at its end has it.
struct Dependency {
    WorkNode* node = nullptr;
    EdgeKind kind{};
};

/// The value that a conditional node decides by.
struct Condition {
    /// With a handle that no other has had.
    static std::shared_ptr<Condition> make();
    /// What kernels do (cudaGraphSetConditional). False where no live condition has this handle.
    static bool set(std::uint64_t handle, unsigned value);
    ~Condition();

    std::uint64_t handle = 0;
    const void* context = nullptr;
    std::optional<unsigned> at_launch;  ///< what a launch of the graph sets it to
    std::function<bool()> goes_on;      ///< whether a loop may go round again
    std::atomic<unsigned> value{0};
    bool has_node = false;
};

/// What its maker knows of a node beyond what it does. Never changed once a node has it.
struct NodeDetails {
    virtual ~NodeDetails() = default;
};

/// What a node does and is, wherever it stands.
struct NodeWork {
    /// As CUgraphNodeType.
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
    /// How a conditional node decides, as CUgraphConditionalNodeType.
    enum class Choice : std::uint8_t { one_if, repeat_while, one_of };

    Kind kind = Kind::empty;
    // What an executable graph cannot be updated to have otherwise.
    const void* context = nullptr;
    std::uint64_t attributes = 0;
    std::uint64_t resets = 0;  ///< of the device, before it was made
    std::array<std::uint64_t, 8> operands{};

    SharedWork work;               ///< null for what does nothing by itself
    std::shared_ptr<Event> event;  ///< of a wait and of a record
    std::vector<std::shared_ptr<WorkGraph>>
        children;  ///< the graph of a graph node; a conditional node's bodies
    std::shared_ptr<Condition> condition;
    Choice choice = Choice::one_if;
    std::shared_ptr<const NodeDetails> details;  ///< may be null

    bool is_memory() const noexcept { return kind == Kind::allocate || kind == Kind::free; }
};

/// One operation in its place in a graph.
struct WorkNode : NodeWork {
    races::Announcement announced;  ///< for the search for races
    std::vector<Dependency> after;  ///< of the same graph, each once
    WorkGraph* graph = nullptr;     ///< that has it
    std::uint64_t id = 0;           ///< never used again
    std::uint64_t origin = 0;       ///< the id of the node that it is a copy of; 0: of none
    bool enabled = true;            ///< in an executable graph; otherwise it does nothing

    bool comes_after(const WorkNode* other) const noexcept;
    void become(const NodeWork& other) { NodeWork::operator=(other); }
};

/// Operations and what they come after. Clients' graphs are changed with captures paused (Captures::paused).
struct WorkGraph : std::enable_shared_from_this<WorkGraph> {
    std::vector<std::shared_ptr<WorkNode>> nodes;
    std::vector<HeldObject> held;
    std::vector<std::shared_ptr<Condition>> conditions;
    std::weak_ptr<WorkGraph> around;  ///< of a body of a conditional node: the graph that has this
    bool embedded = false;            ///< in a node, which destroys it
    bool is_client = false;           ///< a client knows it: its nodes are found by their handles
    std::uint64_t id = 0;
    /// A graph with memory or conditional nodes has one executable graph at a time.
    std::weak_ptr<const void> instance;

    WorkGraph();
    ~WorkGraph();
    WorkGraph(const WorkGraph&) = delete;
    WorkGraph& operator=(const WorkGraph&) = delete;

    /// The graph of a node that a client names, and the node lives as long as that; null for what is none.
    static std::shared_ptr<WorkGraph> of(const WorkNode* node);

    /// The node is this graph's from now on.
    void add(std::shared_ptr<WorkNode> node);
    /// With its edges.
    void remove(const WorkNode* node);
    /// The same nodes, which share nothing with these but what they do, with references of their own.
    std::shared_ptr<WorkGraph> copy(bool for_client) const;
    /// Its nodes, each after what it comes after; nothing where they go round in a circle.
    std::optional<std::vector<WorkNode*>> in_order() const;
    /// Nodes that no other comes after.
    std::vector<WorkNode*> ends() const;
    /// A node here, or in a graph inside, for which `wanted(node)` holds; null when there is none.
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

/// A graph that can be launched any number of times. Not thread-safe but for `mutex`, which its users hold.
class ExecutableGraph {
  public:
    /// `graph` has no circles.
    explicit ExecutableGraph(const WorkGraph& graph) { take(graph); }

    struct Difference {
        /// As the driver's CUgraphExecUpdateResult.
        enum class What : std::uint8_t {
            none = 0,
            topology = 2,
            kind = 3,
            parameters = 5,
            function = 7,
            attributes = 8,
        };
        What what = What::none;
        const WorkNode* node = nullptr;  ///< of the new graph
        const WorkNode* from = nullptr;  ///< the dependency that does not match
    };
    /// Does what `graph` does from now on, if it has the same shape. Launches made before are not changed.
    Difference update(const WorkGraph& graph);
    /// The node that was made from this one, or null.
    WorkNode* made_from(const WorkNode& node) const;
    /// `node`, one of its own, does what `now` does from now on, unless that is another kind of operation.
    Difference::What update(WorkNode& node, const WorkNode& now);
    void enable(WorkNode& node, bool enabled);

    const WorkGraph& graph() const noexcept { return *graph_; }
    std::span<const Step> steps() const noexcept { return steps_; }
    Lanes& lanes() noexcept { return lanes_; }

    std::mutex mutex;

  private:
    void take(const WorkGraph& graph);
    void flatten();

    std::shared_ptr<WorkGraph> graph_;  // launches that run keep it
    std::vector<Step> steps_;
    Lanes lanes_;
};

}  // namespace emulated::streams
