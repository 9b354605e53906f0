// Semantics: CUDA driver API documentation, cuGraphExecUpdate and cuGraphLaunch.
#include "streams/captured_graph.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace emulated::streams {
namespace {

using Difference = ExecutableGraph::Difference;
using What = Difference::What;

/// A graph's operations, one after another; those of graphs inside it stand for the node.
class Flattened {
  public:
    std::vector<Step> steps;

    void add(const CapturedGraph& graph) { add(graph, {}); }

  private:
    using Indices = std::vector<std::size_t>;

    /// `before` is what the graph's first nodes come after. Returns its last steps.
    Indices add(const CapturedGraph& graph, const Indices& before) {
        std::unordered_map<const CapturedNode*, Indices> last_of;
        for (const auto& node : graph.nodes) {
            Indices after = node->after.empty() ? before : Indices{};
            for (const CapturedNode* each : node->after) merge(after, last_of.at(each));
            if (node->kind == CapturedNode::Kind::graph) {
                last_of[node.get()] = add(*node->child, after);
            } else if (node->work == nullptr) {
                last_of[node.get()] = std::move(after);
            } else {
                last_of[node.get()] = {append(*node, std::move(after))};
            }
        }
        Indices last = graph.nodes.empty() ? before : Indices{};
        for (const CapturedNode* node : graph.ends()) merge(last, last_of.at(node));
        return last;
    }

    static void merge(Indices& into, const Indices& more) {
        for (const std::size_t index : more) {
            if (std::find(into.begin(), into.end(), index) == into.end()) into.push_back(index);
        }
    }

    /// A step goes on in the lane of one that it comes after, where that is its lane's last.
    std::size_t append(const CapturedNode& node, Indices after) {
        const auto free =
            std::ranges::find_if(after, [&](std::size_t index) { return ends_[steps[index].lane] == index; });
        const std::size_t lane = free == after.end() ? ends_.size() : steps[*free].lane;
        if (lane == ends_.size()) ends_.emplace_back();
        ends_[lane] = steps.size();
        for (const std::size_t index : after) steps[index].last = false;
        steps.push_back({node.work, std::move(after), lane, true, node.announced});
        return steps.size() - 1;
    }

    Indices ends_;  // of the lanes
};

/// Compares two graphs from their ends on, pairing the nodes by the order of their edges.
class Comparison {
  public:
    Difference compare(const CapturedGraph& old_graph, const CapturedGraph& new_graph) {
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
    /// False when either is another's pair already.
    bool pair(const CapturedNode* before, const CapturedNode* now) {
        const auto [entry, added] = pair_of_.try_emplace(now, before);
        if (!added) return entry->second == before;
        if (!taken_.insert(before).second) return false;
        open_.emplace_back(before, now);
        return true;
    }

    Difference compare(const CapturedNode& before, const CapturedNode& now) {
        if (before.after.size() != now.after.size()) return {What::topology, &now};
        for (std::size_t i = 0; i < now.after.size(); ++i) {
            if (!pair(before.after[i], now.after[i])) return {What::topology, &now, now.after[i]};
        }
        if (before.kind != now.kind) return {What::kind, &now};
        if (before.kind == CapturedNode::Kind::graph) {
            const Difference inside = Comparison().compare(*before.child, *now.child);
            return inside.what == What::none ? inside : Difference{inside.what, &now};
        }
        if (before.context != now.context) {
            return {before.kind == CapturedNode::Kind::kernel ? What::function : What::parameters, &now};
        }
        if (before.attributes != now.attributes) return {What::attributes, &now};
        if (before.operands != now.operands) return {What::parameters, &now};
        return {};
    }

    std::unordered_map<const CapturedNode*, const CapturedNode*> pair_of_;
    std::unordered_set<const CapturedNode*> taken_;
    std::vector<std::pair<const CapturedNode*, const CapturedNode*>> open_;
};

/// The same work, which keeps `graph` too.
SharedWork kept_with(const std::shared_ptr<const CapturedGraph>& graph, const SharedWork& work) {
    return {std::make_shared<const std::pair<std::shared_ptr<const CapturedGraph>, SharedWork>>(graph, work),
            work.get()};
}

}  // namespace

CapturedGraph CapturedGraph::copy() const {
    CapturedGraph copied;
    copied.held = held;
    std::unordered_map<const CapturedNode*, CapturedNode*> copy_of;
    for (const auto& node : nodes) {
        auto& made = copied.nodes.emplace_back(std::make_shared<CapturedNode>(*node));
        for (CapturedNode*& each : made->after) each = copy_of.at(each);
        copy_of[node.get()] = made.get();
    }
    return copied;
}

std::vector<CapturedNode*> CapturedGraph::ends() const {
    std::unordered_set<const CapturedNode*> followed;
    for (const auto& node : nodes) followed.insert(node->after.begin(), node->after.end());
    std::vector<CapturedNode*> found;
    for (const auto& node : nodes) {
        if (!followed.contains(node.get())) found.push_back(node.get());
    }
    return found;
}

bool CapturedGraph::has(const CapturedNode* node) const noexcept {
    return std::any_of(nodes.begin(), nodes.end(), [&](const auto& each) { return each.get() == node; });
}

ExecutableGraph::Difference ExecutableGraph::update(const CapturedGraph& graph) {
    const Difference found = Comparison().compare(*graph_, graph);
    if (found.what == What::none) take(graph);
    return found;
}

void ExecutableGraph::take(const CapturedGraph& graph) {
    graph_ = std::make_shared<const CapturedGraph>(graph.copy());
    Flattened flattened;
    flattened.add(*graph_);
    steps_ = std::move(flattened.steps);
    for (Step& step : steps_) step.work = kept_with(graph_, step.work);
}

}  // namespace emulated::streams
