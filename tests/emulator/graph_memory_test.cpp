// Nodes that allocate and free memory, as specified by cuGraphAddMemAllocNode's documentation, under every policy.
#include "graphs.hpp"

using client::captured;
using client::Drawing;
using client::Executable;
using client::Graph;
using client::Library;
using client::run;
using client::under_each_policy;
using client::World;

namespace {

cuuint64_t attribute(World& world, CUgraphMem_attribute which) {
    cuuint64_t value = 77;
    CHECK(world.api.cuDeviceGetGraphMemAttribute(0, which, &value) == CUDA_SUCCESS);
    return value;
}

/// Adds a node that fills `memory` with the value 3.
CUgraphNode fill_with_three(Drawing& graph, const Drawing::Memory& memory) {
    const CUgraphNode two = graph.fill(memory.address, 0x40000000, 1, {memory.node});
    return graph.kernel("increment", reinterpret_cast<void*>(memory.address), {two});
}

}  // namespace

// "The allocation's address remains fixed across instantiations and launches."
TEST_CASE("memory that a graph allocates and frees is there in between, at every launch") {
    under_each_policy([](World& world) {
        float* out = world.pinned(0.0F);
        Drawing graph(world);
        const Drawing::Memory memory = graph.allocate(4);
        const CUgraphNode copy = graph.copy(reinterpret_cast<CUdeviceptr>(out), memory.address, 4,
                                            {fill_with_three(graph, memory)});
        graph.release(memory.address, {copy});
        const CUstream p = world.device.stream();
        const Executable exec(world, graph);
        for (int i = 0; i < 3; ++i) {
            *out = 0.0F;
            CHECK(run(world, exec, p) == CUDA_SUCCESS);
            CHECK(*out == 3.0F);
        }
        // "These allocations cannot be freed outside the owning graph".
        CHECK(world.api.cuMemFreeAsync(memory.address, p) == CUDA_ERROR_INVALID_VALUE);
        CHECK(world.api.cuMemFree(memory.address) == CUDA_ERROR_INVALID_VALUE);
    });
}

// "It can be accessed ... by stream operations ordered after the graph's execution but before the allocation is freed":
// by cuMemFreeAsync or cuMemFree, or by a graph with a free node.
TEST_CASE(
    "what a graph leaves allocated is freed by a stream or by another graph, and then allocated again") {
    under_each_policy([](World& world) {
        Drawing graph(world), freeing(world);
        const Drawing::Memory memory = graph.allocate(4);
        fill_with_three(graph, memory);
        freeing.release(memory.address);
        const CUstream p = world.device.stream();
        const Executable exec(world, graph), free_exec(world, freeing);
        CHECK(run(world, free_exec, p) == CUDA_ERROR_INVALID_VALUE);  // not allocated yet
        CHECK(world.api.cuMemFreeAsync(memory.address, p) == CUDA_ERROR_INVALID_VALUE);
        const auto launch = [&] {
            CHECK(run(world, exec, p) == CUDA_SUCCESS);
            CHECK(world.device.read(memory.address) == 3.0F);
            CHECK(run(world, exec, p) == CUDA_ERROR_INVALID_VALUE);
            CHECK(world.api.report().find("not freed") != std::string::npos);
        };
        launch();
        CHECK(world.api.cuMemFreeAsync(memory.address, p) == CUDA_SUCCESS);
        CHECK(world.api.cuMemFreeAsync(memory.address, p) == CUDA_ERROR_INVALID_VALUE);
        launch();
        CHECK(world.api.cuMemFree(memory.address) == CUDA_SUCCESS);
        launch();
        CHECK(run(world, free_exec, p) == CUDA_SUCCESS);
        launch();
        CHECK(run(world, free_exec, p) == CUDA_SUCCESS);
    });
}

// Allocation nodes accept the same CUmemPoolProps as memory pools: host memory and managed memory.
TEST_CASE("a graph allocates memory that the host reads too, and a capture takes it from its pool") {
    under_each_policy([](World& world) {
        const CUstream p = world.device.stream();
        for (const auto type : {CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_ALLOCATION_TYPE_MANAGED}) {
            CAPTURE(type);
            Drawing graph(world);
            CUDA_MEM_ALLOC_NODE_PARAMS given = {};
            given.poolProps.allocType = type;
            given.poolProps.location.type = CU_MEM_LOCATION_TYPE_HOST;
            given.bytesize = 4;
            Drawing::Memory memory;
            REQUIRE(world.api.cuGraphAddMemAllocNode(&memory.node, graph, nullptr, 0, &given) ==
                    CUDA_SUCCESS);
            memory.address = given.dptr;
            fill_with_three(graph, memory);
            const Executable exec(world, graph);
            for (int i = 0; i < 2; ++i) {
                CHECK(run(world, exec, p) == CUDA_SUCCESS);
                CHECK(*reinterpret_cast<const float*>(memory.address) == 3.0F);
                CHECK(world.api.cuMemFreeAsync(memory.address, p) == CUDA_SUCCESS);
            }
            CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);

            CUmemoryPool pool = nullptr;
            REQUIRE(world.api.cuMemGetMemPool(&pool, &given.poolProps.location, type) == CUDA_SUCCESS);
            CUdeviceptr y = 0;
            const Graph taken(world, captured(world, p, [&] {
                                  CHECK(world.api.cuMemAllocFromPoolAsync(&y, 4, pool, p) == CUDA_SUCCESS);
                                  CHECK(world.api.cuMemsetD32Async(y, 0x40400000, 1, p) == CUDA_SUCCESS);
                              }));
            const Executable again(world, taken);
            CHECK(run(world, again, p) == CUDA_SUCCESS);
            CHECK(*reinterpret_cast<const float*>(y) == 3.0F);
            CHECK(world.api.cuMemFreeAsync(y, p) == CUDA_SUCCESS);
            CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
        }
        Drawing graph(world);
        CUgraphNode node = nullptr;
        CUDA_MEM_ALLOC_NODE_PARAMS nowhere = {};
        nowhere.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        nowhere.bytesize = 4;
        CHECK(world.api.cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &nowhere) ==
              CUDA_ERROR_INVALID_VALUE);
    });
}

// CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH: "each launch [behaves] as though it called cuMemFreeAsync for every
// unfreed allocation".
TEST_CASE("a graph that frees on launch is launched again and again") {
    under_each_policy([](World& world) {
        Drawing graph(world);
        const Drawing::Memory memory = graph.allocate(4);
        fill_with_three(graph, memory);
        const CUstream p = world.device.stream();
        CUgraphExec exec = nullptr;
        constexpr auto flag = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
        REQUIRE(world.api.cuGraphInstantiateWithFlags(&exec, graph, flag) == CUDA_SUCCESS);
        cuuint64_t flags = 0;
        CHECK(world.api.cuGraphExecGetFlags(exec, &flags) == CUDA_SUCCESS);
        CHECK(flags == flag);
        for (int i = 0; i < 3; ++i) CHECK(world.api.cuGraphLaunch(exec, p) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
        CHECK(world.device.read(memory.address) == 3.0F);
        CHECK(world.api.cuMemFree(memory.address) == CUDA_SUCCESS);
        CHECK(world.api.cuGraphExecDestroy(exec) == CUDA_SUCCESS);
    });
}

TEST_CASE("memory outlives the graph that allocated it until it is freed") {
    under_each_policy([](World& world) {
        const CUstream p = world.device.stream();
        CUdeviceptr address = 0;
        {
            Drawing graph(world);
            const Drawing::Memory memory = graph.allocate(4);
            address = memory.address;
            fill_with_three(graph, memory);
            const Executable exec(world, graph);
            CHECK(run(world, exec, p) == CUDA_SUCCESS);
        }
        CHECK(world.device.read(address) == 3.0F);
        CHECK(world.api.cuMemFreeAsync(address, p) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
        float value = 0.0F;
        CHECK(world.api.cuMemcpyDtoH(&value, address, 4) == CUDA_ERROR_INVALID_VALUE);
    });
}

TEST_CASE("a kernel that reads a graph's memory with no order behind the allocation faults") {
    Library library({{"BASCULE_EMULATED_SCHEDULE", "lazy"}});
    World world(library);
    Drawing graph(world);
    const Drawing::Memory memory = graph.allocate(4);
    graph.kernel("increment", reinterpret_cast<void*>(memory.address));
    CHECK(world.device.launch("increment", nullptr, memory.address) == CUDA_SUCCESS);
    CHECK(world.api.cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(world.api.report().find("a node of a graph") != std::string::npos);
}

// "Nodes and edges of the graph cannot be deleted. ... Only one instantiation of the graph may exist at any point in
// time. The graph cannot be cloned", and it can be a child graph only if it is moved.
TEST_CASE("what graphs with memory may not do is refused") {
    World world("lazy");
    Drawing graph(world), parent(world);
    const Drawing::Memory memory = graph.allocate(64);
    const CUgraphNode node = graph.empty({memory.node});
    CHECK(world.api.cuGraphDestroyNode(node) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(graph.disconnect(memory.node, node) == CUDA_ERROR_NOT_SUPPORTED);
    CUgraph clone = nullptr;
    CHECK(world.api.cuGraphClone(&clone, graph) == CUDA_ERROR_NOT_SUPPORTED);
    CUgraphNode child = nullptr;
    CHECK(world.api.cuGraphAddChildGraphNode(&child, parent, nullptr, 0, graph) == CUDA_ERROR_NOT_SUPPORTED);
    CUgraphExec exec = nullptr, second = nullptr;
    CHECK(world.api.cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    CHECK(world.api.cuGraphInstantiateWithFlags(&second, graph, 0) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(world.api.cuGraphExecDestroy(exec) == CUDA_SUCCESS);
    CHECK(world.api.cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    CHECK(world.api.cuGraphExecDestroy(exec) == CUDA_SUCCESS);
    // cuGraphAddMemFreeNode refuses to free "an allocation twice in the same graph" and "an address that was not
    // returned by an allocation node".
    CUgraphNode freed = nullptr;
    CHECK(world.api.cuGraphAddMemFreeNode(&freed, graph, nullptr, 0, world.device.floats(1, 0.0F)) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(world.api.cuGraphAddMemFreeNode(&freed, graph, nullptr, 0, 0) == CUDA_ERROR_INVALID_VALUE);
    graph.release(memory.address, {node});
    CHECK(world.api.cuGraphAddMemFreeNode(&freed, graph, nullptr, 0, memory.address) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(world.api.cuGraphAddMemFreeNode(&freed, parent, nullptr, 0, memory.address) ==
          CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a graph with memory is moved into its parent") {
    World world("lazy");
    float* out = world.pinned(0.0F);
    Drawing parent(world);
    CUgraph inner = nullptr;
    REQUIRE(world.api.cuGraphCreate(&inner, 0) == CUDA_SUCCESS);
    Drawing graph(world, inner);
    const Drawing::Memory memory = graph.allocate(4);
    const CUgraphNode copy =
        graph.copy(reinterpret_cast<CUdeviceptr>(out), memory.address, 4, {fill_with_three(graph, memory)});
    graph.release(memory.address, {copy});
    CUgraphNodeParams all = {};
    all.type = CU_GRAPH_NODE_TYPE_GRAPH;
    all.graph.graph = inner;
    all.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    CUgraphNode node = nullptr;
    CHECK(world.api.cuGraphAddNode(&node, parent, nullptr, nullptr, 0, &all) == CUDA_SUCCESS);
    CHECK(world.api.cuGraphDestroy(inner) == CUDA_ERROR_INVALID_VALUE);
    const Executable exec(world, parent);
    CHECK(run(world, exec, world.device.stream()) == CUDA_SUCCESS);
    CHECK(*out == 3.0F);
}

// cuMemAllocAsync: "during stream capture, this function results in the creation of an allocation node"; cuMemFreeAsync
// likewise, and "must therefore be passed the address of a graph allocation".
TEST_CASE("allocating and freeing on a capturing stream become nodes") {
    under_each_policy([](World& world) {
        float* out = world.pinned(0.0F);
        const CUdeviceptr ordinary = world.device.floats(1, 1.0F);
        const CUstream p = world.device.stream();
        const Graph graph(world, captured(world, p, [&] {
                              CUdeviceptr address = 0;
                              CHECK(world.api.cuMemAllocAsync(&address, 4, p) == CUDA_SUCCESS);
                              world.api.cuMemcpyDtoDAsync(address, ordinary, 4, p);
                              world.device.launch("twice", p, address);
                              world.api.cuMemcpyDtoHAsync(out, address, 4, p);
                              CHECK(world.api.cuMemFreeAsync(address, p) == CUDA_SUCCESS);
                              CHECK(world.api.cuMemFreeAsync(ordinary, p) == CUDA_ERROR_INVALID_VALUE);
                          }));
        CHECK(graph.type(0) == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
        CHECK(graph.type(4) == CU_GRAPH_NODE_TYPE_MEM_FREE);
        const Executable exec(world, graph);
        for (int i = 0; i < 2; ++i) CHECK(run(world, exec, p) == CUDA_SUCCESS);
        CHECK(*out == 2.0F);
    });
}

// CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT: "amount of memory, in bytes, currently associated with graphs".
TEST_CASE("a device counts the memory of graphs until it is trimmed") {
    Library library({{"BASCULE_EMULATED_SCHEDULE", "lazy"}});
    World world(library);
    CHECK(attribute(world, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 0);
    {
        Drawing graph(world);
        const Drawing::Memory memory = graph.allocate(1 << 20);
        CHECK(attribute(world, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) >= 1 << 20);
        CHECK(world.api.cuDeviceGraphMemTrim(0) == CUDA_SUCCESS);
        CHECK(attribute(world, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) >= 1 << 20);
        CUDA_MEM_ALLOC_NODE_PARAMS kept = {};
        CHECK(world.api.cuGraphMemAllocNodeGetParams(memory.node, &kept) == CUDA_SUCCESS);
        CHECK(kept.dptr == memory.address);
        CHECK(kept.bytesize == 1 << 20);
    }
    CHECK(attribute(world, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) >= 1 << 20);
    CHECK(world.api.cuDeviceGraphMemTrim(0) == CUDA_SUCCESS);
    CHECK(attribute(world, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 0);
    CHECK(attribute(world, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) >= 1 << 20);
    cuuint64_t value = 1;
    const auto set = [&](CUgraphMem_attribute which) {
        return world.api.cuDeviceSetGraphMemAttribute(0, which, &value);
    };
    CHECK(set(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) == CUDA_ERROR_INVALID_VALUE);
    value = 0;
    CHECK(set(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) == CUDA_SUCCESS);
    CHECK(set(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == CUDA_ERROR_INVALID_VALUE);
    CHECK(attribute(world, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) == 0);
    std::size_t free = 0, total = 0;
    CHECK(world.api.cuMemGetInfo(&free, &total) == CUDA_SUCCESS);
    CHECK(total - free < 1 << 20);
}
