// Shared by tests of captures and graphs.
#pragma once

#include <vector>

#include "world.hpp"

namespace client {

constexpr CUstreamCaptureMode global_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
constexpr CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
constexpr CUstreamCaptureMode relaxed_mode = CU_STREAM_CAPTURE_MODE_RELAXED;

inline CUstreamCaptureStatus status_of(World& world, CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CHECK(world.api.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS);
    return status;
}

/// A graph that is destroyed with the test.
class Graph {
  public:
    Graph(World& world, CUgraph graph) : world_(world), graph_(graph) {}
    ~Graph() {
        if (graph_ != nullptr) CHECK(world_.api.cuGraphDestroy(graph_) == CUDA_SUCCESS);
    }
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;
    operator CUgraph() const { return graph_; }

    std::vector<CUgraphNode> nodes() const {
        std::size_t count = 0;
        REQUIRE(world_.api.cuGraphGetNodes(graph_, nullptr, &count) == CUDA_SUCCESS);
        std::vector<CUgraphNode> found(count);
        REQUIRE(world_.api.cuGraphGetNodes(graph_, found.data(), &count) == CUDA_SUCCESS);
        return found;
    }
    CUgraphNodeType type(std::size_t index) const {
        CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
        CHECK(world_.api.cuGraphNodeGetType(nodes()[index], &type) == CUDA_SUCCESS);
        return type;
    }
    std::vector<CUgraphNode> before(std::size_t index) const {
        std::size_t count = 0;
        const CUgraphNode node = nodes()[index];
        REQUIRE(world_.api.cuGraphNodeGetDependencies(node, nullptr, nullptr, &count) == CUDA_SUCCESS);
        std::vector<CUgraphNode> found(count);
        std::vector<CUgraphEdgeData> edges(count);
        REQUIRE(world_.api.cuGraphNodeGetDependencies(node, found.data(), edges.data(), &count) ==
                CUDA_SUCCESS);
        return found;
    }

  private:
    World& world_;
    CUgraph graph_;
};

/// Captures what `work` enqueues on `stream`.
template <class Work>
CUgraph captured(World& world, CUstream stream, const Work& work, CUstreamCaptureMode mode = global_mode) {
    REQUIRE(world.api.cuStreamBeginCapture(stream, mode) == CUDA_SUCCESS);
    work();
    CUgraph graph = nullptr;
    REQUIRE(world.api.cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
    return graph;
}

/// An executable graph that is destroyed with the test.
class Executable {
  public:
    Executable(World& world, CUgraph graph) : world_(world) {
        REQUIRE(world.api.cuGraphInstantiateWithFlags(&exec_, graph, 0) == CUDA_SUCCESS);
    }
    ~Executable() { CHECK(world_.api.cuGraphExecDestroy(exec_) == CUDA_SUCCESS); }
    Executable(const Executable&) = delete;
    Executable& operator=(const Executable&) = delete;
    operator CUgraphExec() const { return exec_; }
    CUresult launch(CUstream stream) { return world_.api.cuGraphLaunch(exec_, stream); }
    CUgraphExecUpdateResultInfo update(CUgraph graph) {
        CUgraphExecUpdateResultInfo info{};
        const CUresult code = world_.api.cuGraphExecUpdate(exec_, graph, &info);
        CHECK(code == (info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS ? CUDA_SUCCESS
                                                                   : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE));
        return info;
    }

  private:
    World& world_;
    CUgraphExec exec_ = nullptr;
};

}  // namespace client
