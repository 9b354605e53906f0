// Helpers to build graphs node by node.
#pragma once

#include <vector>

#include "capturing.hpp"

namespace client {

using Nodes = std::vector<CUgraphNode>;

/// A graph to which a test adds nodes. It is destroyed with this object.
class Drawing {
  public:
    explicit Drawing(World& world) : world_(world) {
        REQUIRE(world.api.cuGraphCreate(&graph_, 0) == CUDA_SUCCESS);
    }
    /// Adds nodes to a graph that something else destroys.
    Drawing(World& world, CUgraph graph) : world_(world), graph_(graph), owned_(false) {}
    ~Drawing() {
        if (owned_) CHECK(world_.api.cuGraphDestroy(graph_) == CUDA_SUCCESS);
    }
    Drawing(const Drawing&) = delete;
    Drawing& operator=(const Drawing&) = delete;
    operator CUgraph() const { return graph_; }

    /// Parameters for one thread of the kernel.
    static CUDA_KERNEL_NODE_PARAMS kernel_parameters(CUfunction function, void** arguments) {
        CUDA_KERNEL_NODE_PARAMS given = {};
        given.func = function;
        given.gridDimX = given.gridDimY = given.gridDimZ = 1;
        given.blockDimX = given.blockDimY = given.blockDimZ = 1;
        given.kernelParams = arguments;
        return given;
    }
    CUgraphNode kernel(const char* name, const void* value, const Nodes& after = {}) {
        return kernel(world_.device.kernel(name), reinterpret_cast<CUdeviceptr>(value), after);
    }
    CUgraphNode kernel(CUfunction function, CUdeviceptr address, const Nodes& after = {}) {
        void* arguments[] = {&address};
        const CUDA_KERNEL_NODE_PARAMS given = kernel_parameters(function, arguments);
        CUgraphNode node = nullptr;
        REQUIRE(world_.api.cuGraphAddKernelNode(&node, graph_, after.data(), after.size(), &given) ==
                CUDA_SUCCESS);
        return node;
    }
    CUgraphNode copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, const Nodes& after = {}) {
        CUDA_MEMCPY3D given = {};
        given.srcMemoryType = given.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
        given.dstDevice = to;
        given.srcDevice = from;
        given.WidthInBytes = bytes;
        given.Height = given.Depth = 1;
        CUgraphNode node = nullptr;
        REQUIRE(world_.api.cuGraphAddMemcpyNode(&node, graph_, after.data(), after.size(), &given,
                                                world_.context()) == CUDA_SUCCESS);
        return node;
    }
    CUgraphNode fill(CUdeviceptr to, unsigned value, std::size_t words, const Nodes& after = {}) {
        const CUDA_MEMSET_NODE_PARAMS given{to, 0, value, 4, words, 1};
        CUgraphNode node = nullptr;
        REQUIRE(world_.api.cuGraphAddMemsetNode(&node, graph_, after.data(), after.size(), &given,
                                                world_.context()) == CUDA_SUCCESS);
        return node;
    }
    CUgraphNode host(CUhostFn function, void* data, const Nodes& after = {}) {
        const CUDA_HOST_NODE_PARAMS given{function, data};
        CUgraphNode node = nullptr;
        REQUIRE(world_.api.cuGraphAddHostNode(&node, graph_, after.data(), after.size(), &given) ==
                CUDA_SUCCESS);
        return node;
    }
    CUgraphNode empty(const Nodes& after = {}) {
        CUgraphNode node = nullptr;
        REQUIRE(world_.api.cuGraphAddEmptyNode(&node, graph_, after.data(), after.size()) == CUDA_SUCCESS);
        return node;
    }
    CUgraphNode child(CUgraph graph, const Nodes& after = {}) {
        CUgraphNode node = nullptr;
        REQUIRE(world_.api.cuGraphAddChildGraphNode(&node, graph_, after.data(), after.size(), graph) ==
                CUDA_SUCCESS);
        return node;
    }
    struct Memory {
        CUgraphNode node;
        CUdeviceptr address;
    };
    Memory allocate(std::size_t bytes, const Nodes& after = {}) {
        CUDA_MEM_ALLOC_NODE_PARAMS given = {};
        given.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        given.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        given.bytesize = bytes;
        CUgraphNode node = nullptr;
        REQUIRE(world_.api.cuGraphAddMemAllocNode(&node, graph_, after.data(), after.size(), &given) ==
                CUDA_SUCCESS);
        return {node, given.dptr};
    }
    CUgraphNode release(CUdeviceptr address, const Nodes& after = {}) {
        CUgraphNode node = nullptr;
        REQUIRE(world_.api.cuGraphAddMemFreeNode(&node, graph_, after.data(), after.size(), address) ==
                CUDA_SUCCESS);
        return node;
    }
    CUresult connect(CUgraphNode from, CUgraphNode to) {
        return world_.api.cuGraphAddDependencies(graph_, &from, &to, nullptr, 1);
    }
    CUresult disconnect(CUgraphNode from, CUgraphNode to) {
        return world_.api.cuGraphRemoveDependencies(graph_, &from, &to, nullptr, 1);
    }
    std::size_t edges() const {
        std::size_t count = 0;
        CHECK(world_.api.cuGraphGetEdges(graph_, nullptr, nullptr, nullptr, &count) == CUDA_SUCCESS);
        return count;
    }
    std::size_t nodes() const {
        std::size_t count = 0;
        CHECK(world_.api.cuGraphGetNodes(graph_, nullptr, &count) == CUDA_SUCCESS);
        return count;
    }

  private:
    World& world_;
    CUgraph graph_ = nullptr;
    bool owned_ = true;
};

/// Launches the graph and waits for it.
inline CUresult run(World& world, CUgraphExec exec, CUstream stream) {
    const CUresult launched = world.api.cuGraphLaunch(exec, stream);
    return launched != CUDA_SUCCESS ? launched : world.api.cuStreamSynchronize(stream);
}

}  // namespace client
