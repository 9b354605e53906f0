// A graph of operations that were captured instead of executed, and what a launch of it is made of.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "streams/graph.hpp"
#include "streams/user_object.hpp"

namespace emulated::streams {

struct CapturedNode;

/// Operations in the order in which they were captured, so that each comes after earlier ones alone.
struct CapturedGraph {
    std::vector<std::shared_ptr<CapturedNode>> nodes;
    std::vector<HeldObject> held;

    /// The same nodes, which share nothing with these but what they do, with references of their own.
    CapturedGraph copy() const;
    /// Nodes that no other comes after.
    std::vector<CapturedNode*> ends() const;
    bool has(const CapturedNode* node) const noexcept;
};

/// One captured operation.
struct CapturedNode {
    enum class Kind : std::uint8_t { kernel, copy, fill, host, graph, empty };  ///< as CUgraphNodeType
    Kind kind = Kind::empty;
    // What an executable graph cannot be updated to have otherwise.
    const void* context = nullptr;
    std::uint64_t attributes = 0;
    std::uint64_t resets = 0;  ///< of the device, before it was captured
    std::array<std::uint64_t, 8> operands{};

    SharedWork work;                             ///< null for a graph and for an empty node
    races::Announcement announced;               ///< for the search for races
    std::shared_ptr<const CapturedGraph> child;  ///< of a graph
    std::vector<CapturedNode*> after;            ///< of the same graph, each once
};

/// A graph that can be launched any number of times. Not thread-safe but for `mutex`, which its users hold.
class ExecutableGraph {
  public:
    explicit ExecutableGraph(const CapturedGraph& graph) { take(graph); }

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
        const CapturedNode* node = nullptr;  ///< of the new graph
        const CapturedNode* from = nullptr;  ///< the dependency that does not match
    };
    /// Does what `graph` does from now on, if it has the same shape. Launches made before are not changed.
    Difference update(const CapturedGraph& graph);

    const CapturedGraph& graph() const noexcept { return *graph_; }
    std::span<const Step> steps() const noexcept { return steps_; }
    Lanes& lanes() noexcept { return lanes_; }

    std::mutex mutex;

  private:
    void take(const CapturedGraph& graph);

    std::shared_ptr<const CapturedGraph> graph_;  // launches that run keep what they were made of
    std::vector<Step> steps_;
    Lanes lanes_;
};

}  // namespace emulated::streams
