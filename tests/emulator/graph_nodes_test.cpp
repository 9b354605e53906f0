// Graphs built node by node, as specified by the driver API's documentation ("Graph Management"), under every policy.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <unistd.h>

#include "graphs.hpp"

using client::captured;
using client::Drawing;
using client::Executable;
using client::global_mode;
using client::Graph;
using client::Nodes;
using client::run;
using client::under_each_policy;
using client::World;

TEST_CASE("kernels, copies, fills and host functions run in the order of the edges") {
    under_each_policy([](World& world) {
        const CUdeviceptr x = world.device.floats(2, 0.0F);
        float* seen = world.pinned(-1.0F);
        static float copied;
        copied = -1.0F;
        Drawing graph(world);
        const CUgraphNode zero = graph.fill(x, 0, 2);
        const CUgraphNode one = graph.kernel("increment", reinterpret_cast<void*>(x), {zero});
        const CUgraphNode two = graph.kernel("twice", reinterpret_cast<void*>(x), {one});
        const CUgraphNode out = graph.copy(reinterpret_cast<CUdeviceptr>(seen), x, 4, {two});
        graph.host([](void* from) { copied = *static_cast<float*>(from); }, seen, {graph.empty({out})});
        const CUstream p = world.device.stream();
        const Executable exec(world, graph);
        CHECK(run(world, exec, p) == CUDA_SUCCESS);
        CHECK(*seen == 2.0F);
        CHECK(copied == 2.0F);
    });
}

TEST_CASE("random chains, with their edges added in any order, give what C++ gives") {
    std::mt19937 random(20261124);
    for (int round = 0; round < 8; ++round) {
        std::array<bool, 24> doubles{};
        for (bool& each : doubles) each = random() % 3 == 0;
        std::array<std::size_t, 24> order{};
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::shuffle(order.begin(), order.end(), random);
        std::vector<std::size_t> edges;
        for (std::size_t i = 0; i + 1 < order.size(); ++i) edges.push_back(i);
        std::shuffle(edges.begin(), edges.end(), random);
        float expected = 1.0F;
        for (const std::size_t i : order) expected = doubles[i] ? expected * 2 : expected + 1;
        under_each_policy([&](World& world) {
            float* x = world.pinned(1.0F);
            Drawing graph(world);
            Nodes nodes;
            for (const bool twice : doubles) nodes.push_back(graph.kernel(twice ? "twice" : "increment", x));
            for (const std::size_t i : edges)
                CHECK(graph.connect(nodes[order[i]], nodes[order[i + 1]]) == CUDA_SUCCESS);
            const Executable exec(world, graph);
            CHECK(run(world, exec, world.device.stream()) == CUDA_SUCCESS);
            CHECK(*x == expected);
        });
    }
}

// cuGraphAddDependencies: "Specifying an existing dependency will return an error". cuGraphRemoveDependencies:
// "Specifying an edge that does not exist in the graph, with data matching edgeData, results in an error".
TEST_CASE("edges are added and removed once, between nodes of the graph") {
    World world("lazy");
    Drawing graph(world), other(world);
    const CUgraphNode a = graph.empty(), b = graph.empty(), stranger = other.empty();
    CHECK(graph.connect(a, b) == CUDA_SUCCESS);
    CHECK(graph.edges() == 1);
    CHECK(graph.connect(a, b) == CUDA_ERROR_INVALID_VALUE);
    CHECK(graph.connect(a, a) == CUDA_ERROR_INVALID_VALUE);
    CHECK(graph.connect(a, stranger) == CUDA_ERROR_INVALID_VALUE);
    CHECK(graph.disconnect(b, a) == CUDA_ERROR_INVALID_VALUE);
    CHECK(graph.disconnect(a, b) == CUDA_SUCCESS);
    CHECK(graph.disconnect(a, b) == CUDA_ERROR_INVALID_VALUE);
    CHECK(graph.edges() == 0);
    CUgraphNode node = nullptr;
    const CUgraphNode twice[] = {a, a};
    CHECK(world.api.cuGraphAddEmptyNode(&node, graph, twice, 2) == CUDA_ERROR_INVALID_VALUE);
    CHECK(world.api.cuGraphAddEmptyNode(&node, graph, &stranger, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(graph.nodes() == 2);
}

TEST_CASE("the lists of nodes and edges agree, and entries beyond the last are null") {
    World world("lazy");
    Drawing graph(world);
    const CUgraphNode a = graph.empty(), b = graph.empty({a}), c = graph.empty({a, b});
    CUgraphNode from[4], to[4];
    CUgraphEdgeData data[4];
    std::size_t count = 4;
    CHECK(world.api.cuGraphGetEdges(graph, from, to, data, &count) == CUDA_SUCCESS);
    CHECK(count == 3);
    for (std::size_t i = 0; i < count; ++i) {
        CAPTURE(i);
        CHECK(((from[i] == a && (to[i] == b || to[i] == c)) || (from[i] == b && to[i] == c)));
        CHECK(data[i].type == 0);
    }
    CHECK(from[3] == nullptr);
    CHECK(to[3] == nullptr);
    CUgraphNode after[3];
    count = 3;
    CHECK(world.api.cuGraphNodeGetDependentNodes(a, after, data, &count) == CUDA_SUCCESS);
    CHECK(count == 2);
    CHECK(Nodes(after, after + 2) == Nodes{b, c});
    count = 1;
    CHECK(world.api.cuGraphNodeGetDependencies(c, after, nullptr, &count) == CUDA_SUCCESS);
    CHECK(count == 1);
    CHECK(world.api.cuGraphGetRootNodes(graph, nullptr, &count) == CUDA_SUCCESS);
    CHECK(count == 1);
}

// CUgraphEdgeData: values other than all zeros are valid between kernels. CUDA_ERROR_LOSSY_QUERY: "an attempt was made
// to introspect an object in a way that would discard semantically important information".
TEST_CASE("programmatic edges are kept between kernels, and refused elsewhere") {
    World world("lazy");
    float* x = world.pinned(1.0F);
    Drawing graph(world);
    const CUgraphNode first = graph.kernel("increment", x), second = graph.kernel("twice", x),
                      third = graph.empty();
    CUgraphEdgeData programmatic = {};
    programmatic.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    programmatic.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
    CHECK(world.api.cuGraphAddDependencies(graph, &first, &third, &programmatic, 1) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(world.api.cuGraphAddDependencies(graph, &first, &second, &programmatic, 1) == CUDA_SUCCESS);
    CUgraphNode before = nullptr;
    CUgraphEdgeData data = {};
    std::size_t count = 1;
    CHECK(world.api.cuGraphNodeGetDependencies(second, &before, nullptr, &count) == CUDA_ERROR_LOSSY_QUERY);
    CHECK(world.api.cuGraphNodeGetDependencies(second, &before, &data, &count) == CUDA_SUCCESS);
    CHECK(data.from_port == programmatic.from_port);
    CHECK(data.type == programmatic.type);
    CHECK(graph.disconnect(first, second) == CUDA_ERROR_INVALID_VALUE);
    const Executable exec(world, graph);
    CHECK(run(world, exec, world.device.stream()) == CUDA_SUCCESS);
    CHECK(*x == 4.0F);
}

// CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE: "instantiation failed due to invalid structure, such as cycles".
TEST_CASE("a graph whose edges go round is not instantiated") {
    World world("lazy");
    Drawing graph(world);
    const CUgraphNode a = graph.empty(), b = graph.empty({a}), c = graph.empty({b});
    CHECK(graph.connect(c, a) == CUDA_SUCCESS);
    CUgraphExec exec = nullptr;
    CUDA_GRAPH_INSTANTIATE_PARAMS parameters = {};
    CHECK(world.api.cuGraphInstantiateWithParams(&exec, graph, &parameters) == CUDA_ERROR_INVALID_VALUE);
    CHECK(parameters.result_out == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
    CHECK(world.api.report().find("circle") != std::string::npos);
    CHECK(graph.disconnect(c, a) == CUDA_SUCCESS);
    const Executable valid(world, graph);
}

TEST_CASE("a destroyed node takes its edges with it, and is not found any more") {
    World world("lazy");
    float* x = world.pinned(1.0F);
    Drawing graph(world);
    const CUgraphNode a = graph.kernel("increment", x), b = graph.kernel("twice", x, {a}),
                      c = graph.kernel("increment", x, {b});
    CHECK(world.api.cuGraphDestroyNode(b) == CUDA_SUCCESS);
    CHECK(graph.nodes() == 2);
    CHECK(graph.edges() == 0);
    CUgraphNodeType type{};
    CHECK(world.api.cuGraphNodeGetType(b, &type) == CUDA_ERROR_INVALID_VALUE);
    CHECK(world.api.cuGraphDestroyNode(b) == CUDA_ERROR_INVALID_VALUE);
    CHECK(graph.connect(a, b) == CUDA_ERROR_INVALID_VALUE);
    CHECK(graph.connect(a, c) == CUDA_SUCCESS);
    const Executable exec(world, graph);
    CHECK(run(world, exec, world.device.stream()) == CUDA_SUCCESS);
    CHECK(*x == 3.0F);
}

TEST_CASE("a node tells what it was given, and does something else once its parameters are replaced") {
    under_each_policy([](World& world) {
        float* x = world.pinned(1.0F);
        float* y = world.pinned(1.0F);
        Drawing graph(world);
        const CUgraphNode node = graph.kernel("increment", x);
        CUDA_KERNEL_NODE_PARAMS kernel = {};
        CHECK(world.api.cuGraphKernelNodeGetParams(node, &kernel) == CUDA_SUCCESS);
        CHECK(kernel.gridDimX == 1);
        CHECK(*static_cast<float**>(kernel.kernelParams[0]) == x);
        void* arguments[] = {&y};
        kernel.kernelParams = arguments;
        CHECK(world.api.cuGraphKernelNodeSetParams(node, &kernel) == CUDA_SUCCESS);
        kernel.blockDimX = 1025;
        CHECK(world.api.cuGraphKernelNodeSetParams(node, &kernel) == CUDA_ERROR_INVALID_VALUE);

        const CUdeviceptr z = world.device.floats(3, 0.0F);
        const CUgraphNode fill = graph.fill(z, 7, 1);
        CUDA_MEMSET_NODE_PARAMS memset = {};
        CHECK(world.api.cuGraphMemsetNodeGetParams(fill, &memset) == CUDA_SUCCESS);
        CHECK(memset.dst == z);
        CHECK(memset.value == 7);
        memset.width = 3;
        memset.value = 0x3F800000;
        CHECK(world.api.cuGraphMemsetNodeSetParams(fill, &memset) == CUDA_SUCCESS);
        CHECK(world.api.cuGraphKernelNodeGetParams(fill, &kernel) == CUDA_ERROR_INVALID_VALUE);

        CUDA_MEMCPY3D copy = {};
        CHECK(world.api.cuGraphMemcpyNodeGetParams(graph.copy(z, z + 4, 4), &copy) == CUDA_SUCCESS);
        CHECK(copy.dstDevice == z);
        CHECK(copy.srcDevice == z + 4);
        CUDA_HOST_NODE_PARAMS host = {};
        const CUgraphNode function = graph.host([](void*) {}, x);
        CHECK(world.api.cuGraphHostNodeGetParams(function, &host) == CUDA_SUCCESS);
        CHECK(host.userData == x);

        const Executable exec(world, graph);
        CHECK(run(world, exec, world.device.stream()) == CUDA_SUCCESS);
        CHECK(*x == 1.0F);
        CHECK(*y == 2.0F);
        CHECK(world.device.read(z + 8) == 1.0F);
    });
}

TEST_CASE("captured nodes tell what they do, too") {
    World world("lazy");
    float* x = world.pinned(1.0F);
    const CUdeviceptr y = world.device.floats(4, 0.0F);
    const CUstream p = world.device.stream();
    const Graph graph(world, captured(world, p, [&] {
                          world.increment(x, p);
                          world.api.cuMemsetD32Async(y, 3, 4, p);
                          world.api.cuMemcpyHtoDAsync(y, x, 4, p);
                      }));
    const Nodes nodes = graph.nodes();
    CUDA_KERNEL_NODE_PARAMS kernel = {};
    CHECK(world.api.cuGraphKernelNodeGetParams(nodes[0], &kernel) == CUDA_SUCCESS);
    CHECK(*static_cast<float**>(kernel.kernelParams[0]) == x);
    CUDA_MEMSET_NODE_PARAMS fill = {};
    CHECK(world.api.cuGraphMemsetNodeGetParams(nodes[1], &fill) == CUDA_SUCCESS);
    CHECK(fill.width == 4);
    CHECK(fill.elementSize == 4);
    CUDA_MEMCPY3D copy = {};
    CHECK(world.api.cuGraphMemcpyNodeGetParams(nodes[2], &copy) == CUDA_SUCCESS);
    CHECK(copy.dstDevice == y);
    CHECK(copy.WidthInBytes == 4);
}

// cuGraphAddKernelNode: CUDA_KERNEL_NODE_PARAMS_v2's `kern` "will only be referenced if func is NULL".
TEST_CASE("a kernel node may be of a CUkernel, in the context that it names") {
    World world("lazy");
    float* x = world.pinned(1.0F);
    Drawing graph(world);
    void* arguments[] = {&x};
    CUDA_KERNEL_NODE_PARAMS given = Drawing::kernel_parameters(world.device.kernel("increment"), arguments);
    given.kern = reinterpret_cast<CUkernel>(given.func);
    given.func = nullptr;
    given.ctx = world.context();
    CUgraphNode node = nullptr;
    CHECK(world.api.cuGraphAddKernelNode(&node, graph, nullptr, 0, &given) == CUDA_SUCCESS);
    CUDA_KERNEL_NODE_PARAMS kept = {};
    CHECK(world.api.cuGraphKernelNodeGetParams(node, &kept) == CUDA_SUCCESS);
    CHECK(kept.kern == given.kern);
    given.kern = nullptr;
    CHECK(world.api.cuGraphAddKernelNode(&node, graph, nullptr, 0, &given) == CUDA_ERROR_INVALID_VALUE);
    const Executable exec(world, graph);
    CHECK(run(world, exec, world.device.stream()) == CUDA_SUCCESS);
    CHECK(*x == 2.0F);
}

TEST_CASE("attributes of a kernel node are set, copied and told") {
    World world("lazy");
    float* x = world.pinned(1.0F);
    Drawing graph(world);
    const CUgraphNode one = graph.kernel("increment", x), other = graph.kernel("twice", x, {one});
    CUkernelNodeAttrValue value = {};
    value.cooperative = 1;
    CHECK(world.api.cuGraphKernelNodeSetAttribute(one, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value) ==
          CUDA_SUCCESS);
    CHECK(world.api.cuGraphKernelNodeCopyAttributes(other, one) == CUDA_SUCCESS);
    value = {};
    CHECK(world.api.cuGraphKernelNodeGetAttribute(other, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value) ==
          CUDA_SUCCESS);
    CHECK(value.cooperative == 1);
    const Executable exec(world, graph);
    CHECK(run(world, exec, world.device.stream()) == CUDA_SUCCESS);
    CHECK(*x == 4.0F);
}

// cuGraphAddChildGraphNode: "the node executes an embedded child graph. The child graph is cloned in this call";
// cuGraphChildGraphNodeGetGraph: "this call does not clone the graph".
TEST_CASE("a child graph is a clone that can be changed in its node") {
    under_each_policy([](World& world) {
        float* x = world.pinned(1.0F);
        Drawing inner(world), outer(world);
        const CUgraphNode first = inner.kernel("increment", x);
        const CUgraphNode before = outer.kernel("twice", x);
        const CUgraphNode node = outer.child(inner, {before});
        outer.kernel("twice", x, {node});
        inner.kernel("twice", x, {first});  // not in the clone
        CUgraph embedded = nullptr;
        CHECK(world.api.cuGraphChildGraphNodeGetGraph(node, &embedded) == CUDA_SUCCESS);
        CHECK(embedded != inner);
        CHECK(world.api.cuGraphDestroy(embedded) == CUDA_ERROR_INVALID_VALUE);
        CUgraphExec none = nullptr;
        CHECK(world.api.cuGraphInstantiateWithFlags(&none, embedded, 0) == CUDA_ERROR_INVALID_VALUE);
        CUgraphNode clone = nullptr;
        CHECK(world.api.cuGraphNodeFindInClone(&clone, first, embedded) == CUDA_SUCCESS);
        Drawing(world, embedded).kernel("increment", x, {clone});
        const Executable exec(world, outer);
        CHECK(run(world, exec, world.device.stream()) == CUDA_SUCCESS);
        CHECK(*x == ((1.0F * 2) + 1 + 1) * 2);
        CHECK(world.api.cuGraphDestroyNode(node) == CUDA_SUCCESS);
        std::size_t count = 0;
        CHECK(world.api.cuGraphGetNodes(embedded, nullptr, &count) == CUDA_ERROR_INVALID_VALUE);
    });
}

TEST_CASE("a child graph of a child graph is a clone of its own") {
    World world("lazy");
    float* x = world.pinned(1.0F);
    Drawing outer(world);
    CUgraph middle_there = nullptr, inner_there = nullptr;
    {
        Drawing inner(world), middle(world);
        inner.kernel("increment", x);
        const CUgraphNode inside = middle.child(inner, {});
        const CUgraphNode node = outer.child(middle, {});
        CHECK(world.api.cuGraphChildGraphNodeGetGraph(node, &middle_there) == CUDA_SUCCESS);
        CUgraphNode copied = nullptr;
        CHECK(world.api.cuGraphNodeFindInClone(&copied, inside, middle_there) == CUDA_SUCCESS);
        CHECK(world.api.cuGraphChildGraphNodeGetGraph(copied, &inner_there) == CUDA_SUCCESS);
    }
    std::size_t count = 0;
    CHECK(world.api.cuGraphGetNodes(inner_there, nullptr, &count) == CUDA_SUCCESS);
    CHECK(count == 1);
}

TEST_CASE("a clone shares nothing with its original but what the nodes do") {
    World world("lazy");
    float* x = world.pinned(1.0F);
    Drawing graph(world);
    const CUgraphNode a = graph.kernel("increment", x), b = graph.kernel("twice", x, {a});
    CUgraph clone = nullptr;
    REQUIRE(world.api.cuGraphClone(&clone, graph) == CUDA_SUCCESS);
    const Graph owner(world, clone);
    CUgraphNode b_there = nullptr;
    CHECK(world.api.cuGraphNodeFindInClone(&b_there, b, clone) == CUDA_SUCCESS);
    CHECK(b_there != b);
    CHECK(world.api.cuGraphDestroyNode(b_there) == CUDA_SUCCESS);
    CHECK(world.api.cuGraphNodeFindInClone(&b_there, b, clone) == CUDA_ERROR_INVALID_VALUE);
    CHECK(graph.nodes() == 2);
    const Executable exec(world, clone);
    CHECK(run(world, exec, world.device.stream()) == CUDA_SUCCESS);
    CHECK(*x == 2.0F);
}

// cuGraphAddEventRecordNode: "Each launch of the graph will record event to capture execution of the node's
// dependencies". cuGraphAddEventWaitNode: "The graph node will wait for all work captured in event".
TEST_CASE("event nodes order a graph with streams outside it") {
    under_each_policy([](World& world) {
        float* x = world.pinned(1.0F);
        const CUstream p = world.device.stream(), q = world.device.stream();
        const CUevent entry = world.device.event(), exit = world.device.event();
        Drawing graph(world);
        CUgraphNode wait = nullptr, record = nullptr;
        REQUIRE(world.api.cuGraphAddEventWaitNode(&wait, graph, nullptr, 0, entry) == CUDA_SUCCESS);
        const CUgraphNode twice = graph.kernel("twice", x, {wait});
        REQUIRE(world.api.cuGraphAddEventRecordNode(&record, graph, &twice, 1, exit) == CUDA_SUCCESS);
        CUevent kept = nullptr;
        CHECK(world.api.cuGraphEventRecordNodeGetEvent(record, &kept) == CUDA_SUCCESS);
        CHECK(kept == exit);
        Executable exec(world, graph);
        for (int i = 0; i < 3; ++i) {
            world.increment(x, q);
            CHECK(world.api.cuEventRecord(entry, q) == CUDA_SUCCESS);
            CHECK(exec.launch(p) == CUDA_SUCCESS);
            CHECK(world.api.cuStreamWaitEvent(q, exit, 0) == CUDA_SUCCESS);
        }
        CHECK(world.api.cuStreamSynchronize(q) == CUDA_SUCCESS);
        CHECK(*x == ((1 + 1) * 2 + 1) * 2 * 2 + 2);  // ((((1 + 1) * 2) + 1) * 2 + 1) * 2
        CHECK(world.api.cuGraphAddEventWaitNode(&wait, graph, nullptr, 0, nullptr) != CUDA_SUCCESS);
    });
}

// CU_EVENT_RECORD_EXTERNAL: "this flag is invalid when used outside of capture".
TEST_CASE("external records and waits are captured as nodes") {
    World world("lazy");
    float* x = world.pinned(1.0F);
    const CUstream p = world.device.stream(), q = world.device.stream();
    const CUevent event = world.device.event();
    CHECK(world.api.cuEventRecordWithFlags(event, p, CU_EVENT_RECORD_EXTERNAL) == CUDA_ERROR_INVALID_VALUE);
    CHECK(world.api.cuStreamWaitEvent(p, event, CU_EVENT_WAIT_EXTERNAL) == CUDA_ERROR_INVALID_VALUE);
    const Graph graph(
        world, captured(world, p, [&] {
            CHECK(world.api.cuStreamWaitEvent(p, event, CU_EVENT_WAIT_EXTERNAL) == CUDA_SUCCESS);
            world.twice(x, p);
            CHECK(world.api.cuEventRecordWithFlags(event, p, CU_EVENT_RECORD_EXTERNAL) == CUDA_SUCCESS);
        }));
    CHECK(graph.type(0) == CU_GRAPH_NODE_TYPE_WAIT_EVENT);
    CHECK(graph.type(2) == CU_GRAPH_NODE_TYPE_EVENT_RECORD);
    Executable exec(world, graph);
    world.increment(x, q);
    world.api.cuEventRecord(event, q);
    CHECK(exec.launch(p) == CUDA_SUCCESS);
    CHECK(world.api.cuEventSynchronize(event) == CUDA_SUCCESS);
    CHECK(*x == 4.0F);
}

TEST_CASE("a node of an executable graph is changed alone, and only into one of its kind") {
    under_each_policy([](World& world) {
        float* x = world.pinned(1.0F);
        float* y = world.pinned(1.0F);
        Drawing graph(world), child(world), longer(world);
        const CUgraphNode node = graph.kernel("increment", x);
        child.kernel("increment", x);
        longer.kernel("twice", x, {longer.kernel("twice", x)});
        const CUgraphNode nested = graph.child(child, {node});
        const CUstream p = world.device.stream();
        const Executable exec(world, graph);
        void* arguments[] = {&y};
        CUDA_KERNEL_NODE_PARAMS kernel = Drawing::kernel_parameters(world.device.kernel("twice"), arguments);
        CHECK(world.api.cuGraphExecKernelNodeSetParams(exec, node, &kernel) == CUDA_SUCCESS);
        CHECK(run(world, exec, p) == CUDA_SUCCESS);
        CHECK(*x == 2.0F);
        CHECK(*y == 2.0F);

        const CUDA_HOST_NODE_PARAMS host{[](void*) {}, nullptr};
        CHECK(world.api.cuGraphExecHostNodeSetParams(exec, node, &host) == CUDA_ERROR_INVALID_VALUE);
        CHECK(world.api.cuGraphExecChildGraphNodeSetParams(exec, nested, longer) == CUDA_ERROR_INVALID_VALUE);
        Drawing same(world);
        same.kernel("twice", x);
        CHECK(world.api.cuGraphExecChildGraphNodeSetParams(exec, nested, same) == CUDA_SUCCESS);
        CHECK(run(world, exec, p) == CUDA_SUCCESS);
        CHECK(*x == 4.0F);
        CHECK(*y == 4.0F);

        unsigned enabled = 7;
        CHECK(world.api.cuGraphNodeSetEnabled(exec, node, 0) == CUDA_SUCCESS);
        CHECK(world.api.cuGraphNodeGetEnabled(exec, node, &enabled) == CUDA_SUCCESS);
        CHECK(enabled == 0);
        CHECK(world.api.cuGraphNodeSetEnabled(exec, nested, 0) == CUDA_ERROR_INVALID_VALUE);
        CHECK(run(world, exec, p) == CUDA_SUCCESS);
        CHECK(*y == 4.0F);
    });
}

TEST_CASE("cuGraphAddNode makes every kind, and refuses what is none") {
    World world("lazy");
    float* x = world.pinned(1.0F);
    Drawing graph(world);
    CUgraphNodeParams all = {};
    all.type = CU_GRAPH_NODE_TYPE_KERNEL;
    void* arguments[] = {&x};
    all.kernel.func = world.device.kernel("increment");
    all.kernel.gridDimX = all.kernel.gridDimY = all.kernel.gridDimZ = 1;
    all.kernel.blockDimX = all.kernel.blockDimY = all.kernel.blockDimZ = 1;
    all.kernel.kernelParams = arguments;
    CUgraphNode node = nullptr;
    CHECK(world.api.cuGraphAddNode(&node, graph, nullptr, nullptr, 0, &all) == CUDA_SUCCESS);
    all = {};
    all.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
    CHECK(world.api.cuGraphAddNode(&node, graph, nullptr, nullptr, 0, &all) == CUDA_ERROR_NOT_SUPPORTED);
    all.type = static_cast<CUgraphNodeType>(99);
    CHECK(world.api.cuGraphAddNode(&node, graph, nullptr, nullptr, 0, &all) == CUDA_ERROR_INVALID_VALUE);
    const Executable exec(world, graph);
    CHECK(run(world, exec, world.device.stream()) == CUDA_SUCCESS);
    CHECK(*x == 2.0F);
}

// cuStreamBeginCaptureToGraph places "new nodes into an existing graph", after its `dependencies`.
TEST_CASE("a capture into a graph adds to it") {
    under_each_policy([](World& world) {
        float* x = world.pinned(1.0F);
        Drawing graph(world);
        const CUgraphNode first = graph.kernel("increment", x);
        const CUstream p = world.device.stream();
        CHECK(world.api.cuStreamBeginCaptureToGraph(p, graph, &first, nullptr, 1, global_mode) ==
              CUDA_SUCCESS);
        world.twice(x, p);
        CUgraph same = nullptr;
        CHECK(world.api.cuStreamEndCapture(p, &same) == CUDA_SUCCESS);
        CHECK(same == graph);
        CHECK(graph.nodes() == 2);
        CHECK(graph.edges() == 1);
        const Executable exec(world, graph);
        CHECK(run(world, exec, p) == CUDA_SUCCESS);
        CHECK(*x == 4.0F);
    });
}

// cuStreamUpdateCaptureDependencies, and the arrays that cuStreamGetCaptureInfo returns.
TEST_CASE("a node made by hand joins a capture that goes on") {
    World world("lazy");
    float* x = world.pinned(1.0F);
    const CUstream p = world.device.stream();
    CHECK(world.api.cuStreamUpdateCaptureDependencies(p, nullptr, nullptr, 0, 0) == CUDA_ERROR_ILLEGAL_STATE);
    const Graph graph(
        world, captured(world, p, [&] {
            world.increment(x, p);
            CUstreamCaptureStatus status{};
            CUgraph filled = nullptr;
            const CUgraphNode* before = nullptr;
            const CUgraphEdgeData* edges = nullptr;
            std::size_t count = 0;
            REQUIRE(world.api.cuStreamGetCaptureInfo(p, &status, nullptr, &filled, &before, &edges, &count) ==
                    CUDA_SUCCESS);
            REQUIRE(count == 1);
            REQUIRE(edges != nullptr);
            CHECK(edges[0].type == 0);
            Drawing child(world);
            child.kernel("twice", x);
            CUgraphNode node = Drawing(world, filled).child(child, {before[0]});
            CHECK(world.api.cuStreamUpdateCaptureDependencies(
                      p, &node, nullptr, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES) == CUDA_SUCCESS);
            world.increment(x, p);
        }));
    CHECK(graph.nodes().size() == 3);
    CHECK(graph.before(2) == Nodes{graph.nodes()[1]});
    const Executable exec(world, graph);
    CHECK(run(world, exec, p) == CUDA_SUCCESS);
    CHECK(*x == 5.0F);
}

TEST_CASE("a graph is written for dot") {
    World world("lazy");
    Drawing graph(world), child(world);
    child.empty();
    graph.child(child, {graph.empty()});
    std::string path = (std::filesystem::temp_directory_path() / "graph-XXXXXX").string();
    const int file = mkstemp(path.data());
    REQUIRE(file >= 0);
    close(file);
    CHECK(world.api.cuGraphDebugDotPrint(graph, path.c_str(), 0) == CUDA_SUCCESS);
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    std::remove(path.c_str());
    CHECK(text.str().starts_with("digraph"));
    CHECK(text.str().find("->") != std::string::npos);
    CHECK(text.str().find("subgraph") != std::string::npos);
}
