// Graphs and executable graphs. Semantics: CUDA driver API documentation, cuGraphExecUpdate and cuGraphLaunch.
#include "streams/work_graph.hpp"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "streams/known.hpp"

namespace emulated::streams {
namespace {

using Difference = ExecutableGraph::Difference;
using What = Difference::What;

/// Work of a conditional node: at every launch it decides which bodies run and how often.
std::function<void()> decide(const WorkNode& node);

/// A graph as a sequence of steps. Steps of child graphs replace their node.
class Flattened {
  public:
    std::vector<Step> steps;

    void add(const WorkGraph& graph) {
        add_defaults(graph);
        add(graph, steps.empty() ? Indices{} : Indices{0});
    }
    /// Adds a conditional node's body, whose conditions are set at the launch of the whole graph.
    void add_body(const WorkGraph& graph) { add(graph, {}); }

  private:
    using Indices = std::vector<std::size_t>;

    /// `before` are the steps that the graph's first nodes follow. Returns the graph's last steps.
    Indices add(const WorkGraph& graph, const Indices& before) {
        std::unordered_map<const WorkNode*, Indices> last_of;
        const std::vector<WorkNode*> order = graph.in_order().value();
        for (const WorkNode* node : order) {
            Indices after = node->after.empty() ? before : Indices{};
            for (const Dependency& each : node->after) merge(after, last_of.at(each.node));
            const bool is_step = node->enabled && (node->work != nullptr || node->event != nullptr ||
                                                   node->kind == WorkNode::Kind::conditional);
            if (node->kind == WorkNode::Kind::graph) {
                last_of[node] = add(*node->children.front(), after);
            } else if (!is_step) {
                last_of[node] = std::move(after);
            } else {
                last_of[node] = {append(*node, std::move(after))};
            }
        }
        Indices last = graph.nodes.empty() ? before : Indices{};
        for (const WorkNode* node : graph.ends()) merge(last, last_of.at(node));
        return last;
    }

    /// Adds a first step that sets conditions to their values at a launch.
    void add_defaults(const WorkGraph& graph) {
        std::vector<std::shared_ptr<Condition>> conditions;
        collect(graph, conditions);
        if (conditions.empty()) return;
        WorkNode node;
        node.work = std::make_shared<const std::function<void()>>([conditions = std::move(conditions)] {
            for (const auto& each : conditions) each->value = *each->at_launch;
        });
        append(node, {});
    }
    static void collect(const WorkGraph& graph, std::vector<std::shared_ptr<Condition>>& into) {
        for (const auto& node : graph.nodes) {
            if (node->condition != nullptr && node->condition->at_launch) into.push_back(node->condition);
            for (const auto& child : node->children) collect(*child, into);
        }
    }

    static void merge(Indices& into, const Indices& more) {
        for (const std::size_t index : more) {
            if (std::find(into.begin(), into.end(), index) == into.end()) into.push_back(index);
        }
    }

    /// A step continues the lane of a step that it follows, if that is the last one of its lane.
    std::size_t append(const WorkNode& node, Indices after) {
        const auto free =
            std::ranges::find_if(after, [&](std::size_t index) { return ends_[steps[index].lane] == index; });
        const std::size_t lane = free == after.end() ? ends_.size() : steps[*free].lane;
        if (lane == ends_.size()) ends_.emplace_back();
        ends_[lane] = steps.size();
        for (const std::size_t index : after) steps[index].last = false;
        Step step{node.work, std::move(after), lane, true, node.announced};
        if (node.kind == WorkNode::Kind::conditional)
            step.work = std::make_shared<const std::function<void()>>(decide(node));
        if (node.kind == WorkNode::Kind::wait) step.waits_for = node.event;
        if (node.kind == WorkNode::Kind::record) step.records = node.event;
        steps.push_back(std::move(step));
        return steps.size() - 1;
    }

    Indices ends_;  // the last step of each lane
};

std::function<void()> decide(const WorkNode& node) {
    std::vector<std::vector<SharedWork>> bodies;
    for (const auto& child : node.children) {
        Flattened flattened;
        flattened.add_body(*child);
        std::vector<SharedWork>& works = bodies.emplace_back();
        for (const Step& step : flattened.steps) works.push_back(step.work);
    }
    // The operations of a body run one after another within the node's own operation; all edges allow that order.
    return [condition = node.condition, choice = node.choice, bodies = std::move(bodies)] {
        const auto run = [&](std::size_t index) {
            for (const SharedWork& each : bodies[index]) (*each)();
        };
        const unsigned value = condition->value;
        if (choice == WorkNode::Choice::one_of) {
            if (value < bodies.size()) run(value);
        } else if (choice == WorkNode::Choice::one_if) {
            if (value != 0) run(0);
            if (value == 0 && bodies.size() > 1) run(1);
        } else {
            while (condition->value != 0 && condition->goes_on()) run(0);
        }
    };
}

What difference(const WorkNode& before, const WorkNode& now);

/// Compares two graphs from their ends backwards, pairing nodes by the order of their edges.
class Comparison {
  public:
    Difference compare(const WorkGraph& old_graph, const WorkGraph& new_graph) {
        if (old_graph.nodes.size() != new_graph.nodes.size()) return {What::topology};
        const auto old_ends = old_graph.ends();
        const auto new_ends = new_graph.ends();
        if (new_ends.size() > old_ends.size()) return {What::topology, new_ends.back()};
        for (std::size_t i = 0; i < new_ends.size(); ++i) pair(old_ends[i], new_ends[i]);
        while (!open_.empty()) {
            const auto [before, now] = open_.back();
            open_.pop_back();
            const Difference found = compare(*before, *now);
            if (found.what != What::none) return found;
        }
        return {};
    }

  private:
    /// Returns false if either node is already paired with another.
    bool pair(const WorkNode* before, const WorkNode* now) {
        const auto [entry, added] = pair_of_.try_emplace(now, before);
        if (!added) return entry->second == before;
        if (!taken_.insert(before).second) return false;
        open_.emplace_back(before, now);
        return true;
    }

    Difference compare(const WorkNode& before, const WorkNode& now) {
        if (before.after.size() != now.after.size()) return {What::topology, &now};
        for (std::size_t i = 0; i < now.after.size(); ++i) {
            if (!pair(before.after[i].node, now.after[i].node) || before.after[i].kind != now.after[i].kind)
                return {What::topology, &now, now.after[i].node};
        }
        return {difference(before, now), &now};
    }

    std::unordered_map<const WorkNode*, const WorkNode*> pair_of_;
    std::unordered_set<const WorkNode*> taken_;
    std::vector<std::pair<const WorkNode*, const WorkNode*>> open_;
};

/// Compares two nodes without their edges.
What difference(const WorkNode& before, const WorkNode& now) {
    if (before.kind != now.kind) return What::kind;
    if (before.children.size() != now.children.size() || before.choice != now.choice) return What::parameters;
    for (std::size_t i = 0; i < now.children.size(); ++i) {
        const Difference inside = Comparison().compare(*before.children[i], *now.children[i]);
        if (inside.what != What::none) return inside.what;
    }
    if (before.context != now.context)
        return before.kind == WorkNode::Kind::kernel ? What::function : What::parameters;
    if (before.attributes != now.attributes) return What::attributes;
    return before.operands == now.operands ? What::none : What::parameters;
}

/// The same work, which also keeps `graph` alive.
SharedWork kept_with(const std::shared_ptr<const WorkGraph>& graph, const SharedWork& work) {
    return {std::make_shared<const std::pair<std::shared_ptr<const WorkGraph>, SharedWork>>(graph, work),
            work.get()};
}

using KnownNodes = Known<const WorkNode*, WorkGraph>;  // of clients' graphs
using KnownConditions = Known<std::uint64_t, Condition>;

std::uint64_t next_id() {
    static std::atomic<std::uint64_t> next{1};
    return next.fetch_add(1);
}

}  // namespace

std::shared_ptr<Condition> Condition::make() {
    auto made = std::make_shared<Condition>();
    made->handle = next_id();
    KnownConditions::add(made->handle, made.get());
    return made;
}

Condition::~Condition() { KnownConditions::remove(handle); }

bool Condition::set(std::uint64_t handle, unsigned value) {
    return KnownConditions::with(handle, [&](Condition& condition) {
        condition.value = value;
        return true;
    });
}

bool WorkNode::comes_after(const WorkNode* other) const noexcept {
    return std::ranges::find(after, other, &Dependency::node) != after.end();
}

WorkGraph::WorkGraph() : id(next_id()) {}

WorkGraph::~WorkGraph() {
    if (!is_client) return;
    for (const auto& node : nodes) KnownNodes::remove(node.get());
}

std::shared_ptr<WorkGraph> WorkGraph::of(const WorkNode* node) {
    return KnownNodes::with(node, [](WorkGraph& graph) { return graph.weak_from_this().lock(); });
}

void WorkGraph::add(std::shared_ptr<WorkNode> node) {
    node->graph = this;
    node->id = next_id();
    if (is_client) KnownNodes::add(node.get(), this);
    nodes.push_back(std::move(node));
}

void WorkGraph::remove(const WorkNode* node) {
    for (const auto& each : nodes) {
        std::erase_if(each->after, [&](const Dependency& dependency) { return dependency.node == node; });
    }
    KnownNodes::remove(node);
    std::erase_if(nodes, [&](const auto& each) { return each.get() == node; });
}

std::shared_ptr<WorkGraph> WorkGraph::copy(bool for_client) const {
    auto copied = std::make_shared<WorkGraph>();
    copied->is_client = for_client;
    copied->held = held;
    std::unordered_map<const WorkNode*, WorkNode*> copy_of;
    for (const auto& node : nodes) {
        auto made = std::make_shared<WorkNode>(*node);
        made->origin = node->id;
        for (auto& child : made->children) {
            child = child->copy(for_client);
            child->embedded = true;
        }
        copy_of[node.get()] = made.get();
        copied->add(std::move(made));
    }
    for (const auto& node : copied->nodes) {
        for (Dependency& each : node->after) each.node = copy_of.at(each.node);
    }
    return copied;
}

std::optional<std::vector<WorkNode*>> WorkGraph::in_order() const {
    std::unordered_map<const WorkNode*, std::size_t> left;
    std::unordered_map<const WorkNode*, std::vector<WorkNode*>> followers;
    std::vector<WorkNode*> order;
    for (const auto& node : nodes) {
        left[node.get()] = node->after.size();
        if (node->after.empty()) order.push_back(node.get());
        for (const Dependency& each : node->after) followers[each.node].push_back(node.get());
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
        for (WorkNode* next : followers[order[i]]) {
            if (--left[next] == 0) order.push_back(next);
        }
    }
    if (order.size() != nodes.size()) return std::nullopt;
    return order;
}

std::vector<WorkNode*> WorkGraph::ends() const {
    std::unordered_set<const WorkNode*> followed;
    for (const auto& node : nodes) {
        for (const Dependency& each : node->after) followed.insert(each.node);
    }
    std::vector<WorkNode*> found;
    for (const auto& node : nodes) {
        if (!followed.contains(node.get())) found.push_back(node.get());
    }
    return found;
}

ExecutableGraph::Difference ExecutableGraph::update(const WorkGraph& graph) {
    const Difference found = Comparison().compare(*graph_, graph);
    if (found.what == What::none) take(graph);
    return found;
}

WorkNode* ExecutableGraph::made_from(const WorkNode& node) const {
    return graph_->find([&](const WorkNode& each) { return each.origin == node.id; });
}

What ExecutableGraph::update(WorkNode& node, const WorkNode& now) {
    const What found = difference(node, now);
    if (found != What::none) return found;
    node.become(now);
    flatten();
    return found;
}

void ExecutableGraph::enable(WorkNode& node, bool enabled) {
    node.enabled = enabled;
    flatten();
}

void ExecutableGraph::take(const WorkGraph& graph) {
    graph_ = graph.copy(false);
    flatten();
}

/// Steps of earlier launches are not affected.
void ExecutableGraph::flatten() {
    Flattened flattened;
    flattened.add(*graph_);
    steps_ = std::move(flattened.steps);
    for (Step& step : steps_) {
        if (step.work != nullptr) step.work = kept_with(graph_, step.work);
    }
}

}  // namespace emulated::streams
