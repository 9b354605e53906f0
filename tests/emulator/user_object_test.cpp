// User objects as specified by the driver API's documentation and the programming guide ("CUDA User Objects").
#include <atomic>
#include <climits>

#include "capturing.hpp"

using client::captured;
using client::Executable;
using client::under_each_policy;
using client::World;

namespace {

constexpr unsigned no_sync = CU_USER_OBJECT_NO_DESTRUCTOR_SYNC;
constexpr unsigned move = CU_GRAPH_USER_OBJECT_MOVE;

void CUDA_CB count(void* counter) { static_cast<std::atomic<int>*>(counter)->fetch_add(1); }

struct Counted {
    Counted(World& world, unsigned references = 1) {
        REQUIRE(world.api.cuUserObjectCreate(&object, &ends, &count, references, no_sync) == CUDA_SUCCESS);
    }
    std::atomic<int> ends{0};
    CUuserObject object = nullptr;
};

/// A graph of one increment. The caller's reference to `counted` is moved to the graph.
CUgraph one_increment(World& world, float* x, CUstream stream, const Counted& counted) {
    const CUgraph graph = captured(world, stream, [&] { world.increment(x, stream); });
    CHECK(world.api.cuGraphRetainUserObject(graph, counted.object, 1, move) == CUDA_SUCCESS);
    return graph;
}

}  // namespace

TEST_CASE("a user object ends once, with the last reference that its maker gives up") {
    World world("eager");
    Counted counted(world, 2);
    CHECK(world.api.cuUserObjectRetain(counted.object, 3) == CUDA_SUCCESS);
    CHECK(world.api.cuUserObjectRelease(counted.object, 4) == CUDA_SUCCESS);
    CHECK(counted.ends == 0);
    CHECK(world.api.cuUserObjectRelease(counted.object, 1) == CUDA_SUCCESS);
    CHECK(counted.ends == 1);
    CHECK(world.api.cuUserObjectRelease(counted.object, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(world.api.cuUserObjectRetain(counted.object, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(counted.ends == 1);
}

TEST_CASE("user objects are refused without a destructor, with other flags, and with counts out of range") {
    World world("eager");
    Counted counted(world);
    CUuserObject object = nullptr;
    auto& api = world.api;
    CHECK(api.cuUserObjectCreate(nullptr, nullptr, &count, 1, no_sync) == CUDA_ERROR_INVALID_VALUE);
    CHECK(api.cuUserObjectCreate(&object, nullptr, nullptr, 1, no_sync) == CUDA_ERROR_INVALID_VALUE);
    CHECK(api.cuUserObjectCreate(&object, nullptr, &count, 1, 0) == CUDA_ERROR_INVALID_VALUE);
    CUgraph graph = nullptr;
    REQUIRE(api.cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
    for (const unsigned wrong : {0U, unsigned{INT_MAX} + 1U}) {
        CHECK(api.cuUserObjectCreate(&object, nullptr, &count, wrong, no_sync) == CUDA_ERROR_INVALID_VALUE);
        CHECK(api.cuUserObjectRetain(counted.object, wrong) == CUDA_ERROR_INVALID_VALUE);
        CHECK(api.cuUserObjectRelease(counted.object, wrong) == CUDA_ERROR_INVALID_VALUE);
        CHECK(api.cuGraphRetainUserObject(graph, counted.object, wrong, 0) == CUDA_ERROR_INVALID_VALUE);
        CHECK(api.cuGraphReleaseUserObject(graph, counted.object, wrong) == CUDA_ERROR_INVALID_VALUE);
    }
    CHECK(api.cuGraphRetainUserObject(graph, counted.object, 1, 2) == CUDA_ERROR_INVALID_VALUE);
    CHECK(api.cuGraphRetainUserObject(nullptr, counted.object, 1, 0) == CUDA_ERROR_INVALID_VALUE);
    CHECK(api.cuGraphReleaseUserObject(graph, counted.object, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(api.cuGraphDestroy(graph) == CUDA_SUCCESS);
    CHECK(counted.ends == 0);
    CHECK(api.cuUserObjectRelease(counted.object, 1) == CUDA_SUCCESS);
    CHECK(counted.ends == 1);
}

TEST_CASE("a graph's references are its own, unless they are moved to it") {
    World world("eager");
    Counted counted(world);
    CUgraph graph = nullptr;
    REQUIRE(world.api.cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
    CHECK(world.api.cuGraphRetainUserObject(graph, counted.object, 2, 0) == CUDA_SUCCESS);
    CHECK(world.api.cuGraphRetainUserObject(graph, counted.object, 1, move) == CUDA_SUCCESS);
    CHECK(world.api.cuGraphReleaseUserObject(graph, counted.object, 4) == CUDA_ERROR_INVALID_VALUE);
    CHECK(world.api.cuGraphReleaseUserObject(graph, counted.object, 2) == CUDA_SUCCESS);
    CHECK(counted.ends == 0);
    CHECK(world.api.cuGraphDestroy(graph) == CUDA_SUCCESS);
    CHECK(counted.ends == 1);
}

TEST_CASE("an executable graph has references of its own, and what runs holds them") {
    under_each_policy([](World& world) {
        float* x = world.pinned(1.0F);
        const CUstream p = world.device.stream();
        Counted counted(world);
        const CUgraph graph = one_increment(world, x, p, counted);
        {
            Executable exec(world, graph);
            CHECK(world.api.cuGraphDestroy(graph) == CUDA_SUCCESS);
            CHECK(counted.ends == 0);
            CHECK(exec.launch(p) == CUDA_SUCCESS);
        }
        if (counted.ends != 0) CHECK(*x == 2.0F);
        CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
        CHECK(counted.ends == 1);
        CHECK(*x == 2.0F);
    });
}

TEST_CASE("an update replaces what an executable graph holds") {
    World world("eager");
    float* x = world.pinned(1.0F);
    const CUstream p = world.device.stream();
    Counted first(world), second(world);
    const CUgraph one = one_increment(world, x, p, first);
    const CUgraph two = one_increment(world, x, p, second);
    {
        Executable exec(world, one);
        CHECK(world.api.cuGraphDestroy(one) == CUDA_SUCCESS);
        CHECK(first.ends == 0);
        CHECK(exec.update(two).result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
        CHECK(first.ends == 1);
        CHECK(world.api.cuGraphDestroy(two) == CUDA_SUCCESS);
        CHECK(second.ends == 0);
    }
    CHECK(second.ends == 1);
}

TEST_CASE("a graph that is a node of another is held by that one") {
    World world("eager");
    float* x = world.pinned(1.0F);
    const CUstream p = world.device.stream();
    Counted counted(world);
    const CUgraph inner = one_increment(world, x, p, counted);
    CUgraph outer = nullptr;
    CUgraphNode node = nullptr;
    REQUIRE(world.api.cuGraphCreate(&outer, 0) == CUDA_SUCCESS);
    REQUIRE(world.api.cuGraphAddChildGraphNode(&node, outer, nullptr, 0, inner) == CUDA_SUCCESS);
    CHECK(world.api.cuGraphDestroy(inner) == CUDA_SUCCESS);
    CHECK(counted.ends == 0);
    CHECK(world.api.cuGraphDestroy(outer) == CUDA_SUCCESS);
    CHECK(counted.ends == 1);
}

TEST_CASE(
    "a capture's graph takes user objects before it is finished, and gives them up when it is thrown away") {
    World world("eager");
    const CUstream p = world.device.stream();
    Counted counted(world);
    REQUIRE(world.api.cuStreamBeginCapture(p, client::global_mode) == CUDA_SUCCESS);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph graph = nullptr;
    REQUIRE(world.api.cuStreamGetCaptureInfo(p, &status, nullptr, &graph, nullptr, nullptr, nullptr) ==
            CUDA_SUCCESS);
    CHECK(world.api.cuGraphRetainUserObject(graph, counted.object, 1, move) == CUDA_SUCCESS);
    CHECK(world.api.cuStreamSynchronize(p) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(counted.ends == 0);
    CHECK(world.api.cuStreamEndCapture(p, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(graph == nullptr);
    CHECK(counted.ends == 1);
}

TEST_CASE("a destroyed graph gives its references up, also while an event of its capture lives") {
    World world("eager");
    Counted counted(world);
    CUstream stream = nullptr;
    CUevent event = nullptr;
    REQUIRE(world.api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    REQUIRE(world.api.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
    CUgraph graph =
        captured(world, stream, [&] { REQUIRE(world.api.cuEventRecord(event, stream) == CUDA_SUCCESS); });
    REQUIRE(world.api.cuGraphRetainUserObject(graph, counted.object, 1, move) == CUDA_SUCCESS);
    CHECK(counted.ends == 0);
    CHECK(world.api.cuGraphDestroy(graph) == CUDA_SUCCESS);
    CHECK(counted.ends == 1);
    CHECK(world.api.cuEventDestroy(event) == CUDA_SUCCESS);
    CHECK(world.api.cuStreamDestroy(stream) == CUDA_SUCCESS);
}
