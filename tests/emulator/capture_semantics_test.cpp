// Stream capture as specified by the driver API's documentation ("Stream Management") and the CUDA programming guide
// ("Creating a Graph Using Stream Capture"), under every policy. Each test names its source.
#include <cstring>
#include <thread>

#include "capturing.hpp"

using client::captured;
using client::global_mode;
using client::Graph;
using client::relaxed_mode;
using client::status_of;
using client::thread_mode;
using client::under_each_policy;
using client::World;

namespace {

constexpr CUstreamCaptureStatus active = CU_STREAM_CAPTURE_STATUS_ACTIVE;
constexpr CUstreamCaptureStatus invalidated = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
constexpr CUstreamCaptureStatus none = CU_STREAM_CAPTURE_STATUS_NONE;

/// Checks that the capture on `stream` was invalidated: ending it returns an error and no graph, and frees the stream.
void check_invalidated(World& world, CUstream stream) {
    CHECK(status_of(world, stream) == invalidated);
    auto* graph = reinterpret_cast<CUgraph>(8);
    CHECK(world.api.cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(graph == nullptr);
    CHECK(status_of(world, stream) == none);
}

/// Checks that the capture on `stream` was not disturbed.
void check_intact(World& world, CUstream stream) {
    CHECK(status_of(world, stream) == active);
    CUgraph graph = nullptr;
    CHECK(world.api.cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
    CHECK(world.api.cuGraphDestroy(graph) == CUDA_SUCCESS);
}

template <class Work>
void in_another_thread(World& world, const Work& work) {
    std::thread thread([&, context = world.context()] {
        world.api.cuCtxPushCurrent(context);
        work();
        world.api.cuCtxPopCurrent(nullptr);
    });
    thread.join();
}

}  // namespace

// cuStreamBeginCapture: "all operations pushed into the stream will not be executed, but will instead be
// captured into a graph".
TEST_CASE("what is put on a capturing stream becomes nodes and is not executed") {
    under_each_policy([](World& world) {
        float* x = world.pinned(1.0F);
        const CUdeviceptr y = world.device.floats(4, 5.0F);
        const CUstream p = world.device.stream();
        const Graph graph(
            world, captured(world, p, [&] {
                CHECK(world.increment(x, p) == CUDA_SUCCESS);
                CHECK(world.api.cuMemsetD32Async(y, 0, 4, p) == CUDA_SUCCESS);
                CHECK(world.api.cuMemcpyHtoDAsync(y, x, 4, p) == CUDA_SUCCESS);
                CHECK(world.api.cuLaunchHostFunc(
                          p, [](void* data) { *static_cast<float*>(data) = 9.0F; }, x) == CUDA_SUCCESS);
            }));
        CHECK(world.api.cuCtxSynchronize() == CUDA_SUCCESS);
        CHECK(*x == 1.0F);
        CHECK(world.device.read(y) == 5.0F);
        REQUIRE(graph.nodes().size() == 4);
        CHECK(graph.type(0) == CU_GRAPH_NODE_TYPE_KERNEL);
        CHECK(graph.type(1) == CU_GRAPH_NODE_TYPE_MEMSET);
        CHECK(graph.type(2) == CU_GRAPH_NODE_TYPE_MEMCPY);
        CHECK(graph.type(3) == CU_GRAPH_NODE_TYPE_HOST);
        CHECK(graph.before(0).empty());
        for (std::size_t i = 1; i < 4; ++i) CHECK(graph.before(i) == std::vector{graph.nodes()[i - 1]});
    });
}

// cuStreamBeginCapture: not on CU_STREAM_LEGACY; "it may only be initiated if the stream is not already in capture
// mode".
TEST_CASE("the legacy default stream and a capturing stream cannot begin a capture, others can") {
    under_each_policy([](World& world) {
        for (CUstream legacy : {static_cast<CUstream>(nullptr), CU_STREAM_LEGACY})
            CHECK(world.api.cuStreamBeginCapture(legacy, global_mode) ==
                  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        for (CUstream stream : {CU_STREAM_PER_THREAD, world.device.stream(CU_STREAM_DEFAULT)}) {
            CHECK(world.api.cuStreamBeginCapture(stream, relaxed_mode) == CUDA_SUCCESS);
            CHECK(world.api.cuStreamBeginCapture(stream, relaxed_mode) == CUDA_ERROR_ILLEGAL_STATE);
            check_intact(world, stream);
        }
        const CUstream p = world.device.stream();
        CHECK(world.api.cuStreamBeginCapture(p, static_cast<CUstreamCaptureMode>(3)) ==
              CUDA_ERROR_INVALID_VALUE);
        CUgraph graph = nullptr;
        CHECK(world.api.cuStreamEndCapture(p, &graph) == CUDA_ERROR_ILLEGAL_STATE);
    });
}

// Programming guide, "Cross-stream Dependencies and Events": waiting for a captured event puts a stream into
// the capture; it has to be joined again.
TEST_CASE("a stream that waits for a captured event is pulled in, with the dependencies of its calls") {
    under_each_policy([](World& world) {
        float* x = world.pinned();
        float* y = world.pinned();
        const CUstream p = world.device.stream();
        const CUstream q = world.device.stream();
        const CUevent forked = world.device.event();
        const CUevent joined = world.device.event();
        const Graph graph(world, captured(world, p, [&] {
                              world.increment(x, p);
                              CHECK(world.api.cuEventRecord(forked, p) == CUDA_SUCCESS);
                              CHECK(status_of(world, q) == none);
                              CHECK(world.api.cuStreamWaitEvent(q, forked, 0) == CUDA_SUCCESS);
                              CHECK(status_of(world, q) == active);
                              world.increment(y, q);
                              world.twice(x, p);
                              CHECK(world.api.cuEventRecord(joined, q) == CUDA_SUCCESS);
                              CHECK(world.api.cuStreamWaitEvent(p, joined, 0) == CUDA_SUCCESS);
                              world.increment(x, p);
                          }));
        CHECK(status_of(world, q) == none);
        const auto nodes = graph.nodes();
        REQUIRE(nodes.size() == 4);
        CHECK(graph.before(1) == std::vector{nodes[0]});
        CHECK(graph.before(2) == std::vector{nodes[0]});
        CHECK(graph.before(3) == std::vector{nodes[2], nodes[1]});
        CHECK(world.increment(y, q) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamSynchronize(q) == CUDA_SUCCESS);
        CHECK(*y == 1.0F);
        CHECK(*x == 0.0F);
    });
}

// CUDA_ERROR_STREAM_CAPTURE_UNJOINED: "a fork that was not joined to the primary stream".
TEST_CASE("a fork that is not joined fails the end, and frees every stream") {
    under_each_policy([](World& world) {
        float* x = world.pinned();
        const CUstream p = world.device.stream();
        const CUstream q = world.device.stream();
        const CUevent forked = world.device.event();
        world.api.cuStreamBeginCapture(p, global_mode);
        world.api.cuEventRecord(forked, p);
        world.api.cuStreamWaitEvent(q, forked, 0);
        world.increment(x, q);
        CUgraph graph = nullptr;
        CHECK(world.api.cuStreamEndCapture(q, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
        CHECK(status_of(world, p) == active);
        CHECK(world.api.cuStreamEndCapture(p, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
        CHECK(graph == nullptr);
        CHECK(status_of(world, p) == none);
        CHECK(status_of(world, q) == none);
    });
}

// Programming guide, "Prohibited and Unhandled Operations": captured work must not be synchronised or queried.
TEST_CASE("waiting for a capturing stream or asking it is refused and invalidates") {
    under_each_policy([](World& world) {
        float* x = world.pinned();
        const CUstream p = world.device.stream();
        const auto refused = [&](CUresult (*question)(World&, CUstream)) {
            REQUIRE(world.api.cuStreamBeginCapture(p, relaxed_mode) == CUDA_SUCCESS);
            CHECK(question(world, p) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
            CHECK(world.increment(x, p) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
            check_invalidated(world, p);
        };
        refused([](World& w, CUstream s) { return w.api.cuStreamSynchronize(s); });
        refused([](World& w, CUstream s) { return w.api.cuStreamQuery(s); });
        refused([](World& w, CUstream) { return w.api.cuCtxSynchronize(); });
        CHECK(world.increment(x, p) == CUDA_SUCCESS);  // usable as before
        CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
        CHECK(*x == 1.0F);
    });
}

// CUDA_ERROR_CAPTURED_EVENT: "not permitted on an event which was last recorded in a capturing stream".
TEST_CASE("an event that marks captured work cannot be asked until it is recorded elsewhere") {
    under_each_policy([](World& world) {
        const CUstream p = world.device.stream();
        const CUevent event = world.device.event();
        world.api.cuStreamBeginCapture(p, relaxed_mode);
        CHECK(world.api.cuEventRecord(event, p) == CUDA_SUCCESS);
        CHECK(world.api.cuEventQuery(event) == CUDA_ERROR_CAPTURED_EVENT);
        check_invalidated(world, p);
        CHECK(world.api.cuEventSynchronize(event) == CUDA_ERROR_CAPTURED_EVENT);
        CHECK(world.api.cuStreamWaitEvent(p, event, 0) == CUDA_ERROR_CAPTURED_EVENT);
        CHECK(world.api.cuEventRecord(event, p) == CUDA_SUCCESS);
        CHECK(world.api.cuEventSynchronize(event) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamWaitEvent(p, event, 0) == CUDA_SUCCESS);
    });
}

// CUDA_ERROR_STREAM_CAPTURE_ISOLATION: "a dependency would have been created which crosses the capture
// sequence boundary".
TEST_CASE("a capturing stream cannot wait for what is not captured") {
    under_each_policy([](World& world) {
        const CUstream p = world.device.stream();
        const CUevent event = world.device.event();
        CHECK(world.api.cuEventRecord(event, world.device.stream()) == CUDA_SUCCESS);
        world.api.cuStreamBeginCapture(p, global_mode);
        CHECK(world.api.cuStreamWaitEvent(p, event, 0) == CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
        check_invalidated(world, p);
    });
}

// CUDA_ERROR_STREAM_CAPTURE_MERGE: "would have resulted in a merge of two independent capture sequences".
TEST_CASE("two captures cannot become one") {
    under_each_policy([](World& world) {
        const CUstream p = world.device.stream();
        const CUstream q = world.device.stream();
        const CUevent event = world.device.event();
        world.api.cuStreamBeginCapture(p, global_mode);
        world.api.cuStreamBeginCapture(q, global_mode);
        world.api.cuEventRecord(event, p);
        CHECK(world.api.cuStreamWaitEvent(q, event, 0) == CUDA_ERROR_STREAM_CAPTURE_MERGE);
        check_invalidated(world, p);
        check_invalidated(world, q);
    });
}

// Programming guide: "any attempted use of the legacy stream is invalid" while a stream that was not created
// with CU_STREAM_NON_BLOCKING is captured; cuStreamIsCapturing: "is not invalidated".
TEST_CASE("the legacy default stream is unusable beside a capturing blocking stream, usable beside others") {
    under_each_policy([](World& world) {
        float* x = world.pinned();
        const CUevent event = world.device.event();
        const CUstream blocking = world.device.stream(CU_STREAM_DEFAULT);
        const auto implicit = [&](CUresult (*use)(World&, float*, CUevent)) {
            REQUIRE(world.api.cuStreamBeginCapture(blocking, relaxed_mode) == CUDA_SUCCESS);
            CHECK(use(world, x, event) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
            check_invalidated(world, blocking);
        };
        implicit([](World& w, float* value, CUevent) { return w.increment(value, nullptr); });
        implicit([](World& w, float*, CUevent e) { return w.api.cuEventRecord(e, nullptr); });
        implicit([](World& w, float*, CUevent e) { return w.api.cuStreamWaitEvent(nullptr, e, 0); });
        implicit([](World& w, float*, CUevent) { return w.api.cuStreamSynchronize(nullptr); });
        implicit([](World& w, float*, CUevent) { return w.api.cuStreamQuery(CU_STREAM_LEGACY); });

        REQUIRE(world.api.cuStreamBeginCapture(blocking, relaxed_mode) == CUDA_SUCCESS);
        CUstreamCaptureStatus status{};
        CHECK(world.api.cuStreamIsCapturing(nullptr, &status) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        CHECK(world.api.cuStreamGetCaptureInfo(nullptr, &status, nullptr, nullptr, nullptr, nullptr,
                                               nullptr) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        check_intact(world, blocking);

        const CUstream free = world.device.stream(CU_STREAM_NON_BLOCKING);
        REQUIRE(world.api.cuStreamBeginCapture(free, relaxed_mode) == CUDA_SUCCESS);
        CHECK(world.increment(x, nullptr) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
        CHECK(*x == 1.0F);
        check_intact(world, free);
    });
}

// CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: "a disallowed implicit dependency on a current capture sequence from
// cudaStreamLegacy".
TEST_CASE("the legacy default stream cannot be pulled into a capture") {
    under_each_policy([](World& world) {
        const CUstream p = world.device.stream();
        const CUevent event = world.device.event();
        world.api.cuStreamBeginCapture(p, global_mode);
        world.api.cuEventRecord(event, p);
        CHECK(world.api.cuStreamWaitEvent(nullptr, event, 0) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        check_invalidated(world, p);
    });
}

// cuThreadExchangeStreamCaptureMode, the three modes.
TEST_CASE("calls that a capture does not see are refused as the threads' and captures' modes say") {
    struct Row {
        CUstreamCaptureMode capture, thread;
        bool same_thread, refused;
    };
    constexpr Row rows[] = {
        {global_mode, global_mode, true, true},   {global_mode, global_mode, false, true},
        {global_mode, thread_mode, true, true},   {global_mode, thread_mode, false, false},
        {global_mode, relaxed_mode, true, false}, {global_mode, relaxed_mode, false, false},
        {thread_mode, global_mode, true, true},   {thread_mode, global_mode, false, false},
        {thread_mode, thread_mode, true, true},   {thread_mode, thread_mode, false, false},
        {thread_mode, relaxed_mode, true, false}, {relaxed_mode, global_mode, true, false},
        {relaxed_mode, global_mode, false, false}};
    under_each_policy([&](World& world) {
        const CUstream p = world.device.stream();
        for (const Row& row : rows) {
            CAPTURE(&row - rows);
            REQUIRE(world.api.cuStreamBeginCapture(p, row.capture) == CUDA_SUCCESS);
            const auto allocate = [&] {
                CUstreamCaptureMode mode = row.thread;
                CHECK(world.api.cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS);
                CHECK(mode == global_mode);
                CUdeviceptr address = 0;
                const CUresult code = world.api.cuMemAlloc(&address, 4);
                CHECK(code == (row.refused ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS));
                if (address != 0) CHECK(world.api.cuMemFree(address) == CUDA_SUCCESS);
                CHECK(world.api.cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS);
                CHECK(mode == row.thread);
            };
            row.same_thread ? allocate() : in_another_thread(world, allocate);
            row.refused ? check_invalidated(world, p) : check_intact(world, p);
        }
        CUstreamCaptureMode wrong = static_cast<CUstreamCaptureMode>(7);
        CHECK(world.api.cuThreadExchangeStreamCaptureMode(&wrong) == CUDA_ERROR_INVALID_VALUE);
    });
}

// The same for each kind of call. Which kinds are affected was recorded on an H100 by tests/gpu/captures.py.
TEST_CASE("allocating, freeing, making and waiting are what captures refuse, and the report names the call") {
    under_each_policy([](World& world) {
        const CUstream p = world.device.stream();
        const CUstream other = world.device.stream();
        const CUevent event = world.device.event();
        const CUdeviceptr memory = world.device.floats(1, 1.0F);
        float* host = world.pinned();
        const auto refused = [&](const char* name, const auto& call) {
            CAPTURE(name);
            REQUIRE(world.api.cuStreamBeginCapture(p, thread_mode) == CUDA_SUCCESS);
            CHECK(call() == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
            CHECK(world.api.report().find(name) != std::string::npos);
            check_invalidated(world, p);
        };
        CUlibrary library = nullptr;
        void* pinned = nullptr;
        refused("cuMemFree", [&] { return world.api.cuMemFree(memory); });
        refused("cuMemAlloc", [&] { return world.api.cuMemHostAlloc(&pinned, 4, 0); });
        refused("cuStreamSynchronize", [&] { return world.api.cuStreamSynchronize(other); });
        refused("cuStreamQuery", [&] { return world.api.cuStreamQuery(other); });
        refused("cuEventQuery", [&] { return world.api.cuEventQuery(event); });
        refused("cuEventSynchronize", [&] { return world.api.cuEventSynchronize(event); });
        CUgraph graph = nullptr;
        REQUIRE(world.api.cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
        CUgraphExec exec = nullptr;
        const auto instantiate = [&] { return world.api.cuGraphInstantiateWithFlags(&exec, graph, 0); };
        refused("cuGraphInstantiate", instantiate);
        REQUIRE(instantiate() == CUDA_SUCCESS);
        refused("cuGraphExecDestroy", [&] { return world.api.cuGraphExecDestroy(exec); });
        refused("cuGraphLaunch", [&] { return world.api.cuGraphLaunch(exec, p); });

        REQUIRE(world.api.cuStreamBeginCapture(p, thread_mode) == CUDA_SUCCESS);
        CUevent made = nullptr;
        CHECK(world.api.cuEventCreate(&made, 0) == CUDA_SUCCESS);
        CHECK(world.api.cuEventDestroy(made) == CUDA_SUCCESS);
        CHECK(world.increment(host, other) == CUDA_SUCCESS);  // elsewhere work continues
        CHECK(world.api.cuGraphLaunch(exec, other) == CUDA_SUCCESS);
        CHECK(world.api.cuMemcpyHtoD(memory, host, 4) == CUDA_SUCCESS);
        CHECK(world.api.cuMemsetD8(memory, 1, 4) == CUDA_SUCCESS);
        CHECK(world.api.cuLibraryLoadData(&library, client::program, nullptr, nullptr, 0, nullptr, nullptr,
                                          0) == CUDA_SUCCESS);
        check_intact(world, p);
        CHECK(world.api.cuLibraryUnload(library) == CUDA_SUCCESS);
        CHECK(world.api.cuGraphExecDestroy(exec) == CUDA_SUCCESS);
        CHECK(world.api.cuGraphDestroy(graph) == CUDA_SUCCESS);
    });
}

// cuStreamEndCapture: "this call must be from the same thread as cuStreamBeginCapture", unless relaxed.
TEST_CASE("only a relaxed capture can be ended by another thread") {
    under_each_policy([](World& world) {
        const CUstream p = world.device.stream();
        for (const CUstreamCaptureMode mode : {global_mode, thread_mode, relaxed_mode}) {
            world.api.cuStreamBeginCapture(p, mode);
            CUgraph graph = nullptr;
            CUresult code = CUDA_SUCCESS;
            in_another_thread(world, [&] { code = world.api.cuStreamEndCapture(p, &graph); });
            CHECK(code == (mode == relaxed_mode ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD));
            if (mode == relaxed_mode) {
                CHECK(world.api.cuGraphDestroy(graph) == CUDA_SUCCESS);
            } else {
                check_intact(world, p);
            }
        }
    });
}

// cuStreamGetCaptureInfo: id, graph and dependencies while the capture is active.
TEST_CASE("a capture tells its number, its graph so far, and what the next operation comes after") {
    under_each_policy([](World& world) {
        float* x = world.pinned();
        const CUstream p = world.device.stream();
        CUstreamCaptureStatus status{};
        cuuint64_t id = 0;
        CUgraph graph = nullptr;
        const CUgraphNode* before = nullptr;
        const CUgraphEdgeData* edges = nullptr;
        std::size_t count = 7;
        const auto ask = [&] {
            edges = nullptr;
            return world.api.cuStreamGetCaptureInfo(p, &status, &id, &graph, &before, &edges, &count);
        };
        CHECK(ask() == CUDA_SUCCESS);
        CHECK(status == none);
        world.api.cuStreamBeginCapture(p, global_mode);
        CHECK(ask() == CUDA_SUCCESS);
        CHECK(status == active);
        CHECK(count == 0);
        const cuuint64_t first = id;
        world.increment(x, p);
        world.increment(x, p);
        CHECK(ask() == CUDA_SUCCESS);
        CHECK(id == first);
        REQUIRE(count == 1);
        REQUIRE(edges != nullptr);  // one per dependency
        const CUgraphEdgeData ordinary{};
        CHECK(std::memcmp(edges, &ordinary, sizeof ordinary) == 0);
        std::size_t nodes = 0;
        CHECK(world.api.cuGraphGetNodes(graph, nullptr, &nodes) == CUDA_SUCCESS);
        CHECK(nodes == 2);
        CUgraphNodeType type{};
        CHECK(world.api.cuGraphNodeGetType(*before, &type) == CUDA_SUCCESS);
        CHECK(type == CU_GRAPH_NODE_TYPE_KERNEL);
        CUgraphExec exec = nullptr;
        CHECK(world.api.cuGraphDestroy(graph) == CUDA_ERROR_ILLEGAL_STATE);  // owned by the capture
        CHECK(world.api.cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_ERROR_ILLEGAL_STATE);
        CUgraph ended = nullptr;
        CHECK(world.api.cuStreamEndCapture(p, &ended) == CUDA_SUCCESS);
        CHECK(ended == graph);
        CHECK(world.api.cuGraphDestroy(ended) == CUDA_SUCCESS);
        CHECK(world.api.cuGraphNodeGetType(*before, &type) == CUDA_ERROR_INVALID_VALUE);
        world.api.cuStreamBeginCapture(p, global_mode);
        CHECK(ask() == CUDA_SUCCESS);
        CHECK(id != first);
        check_intact(world, p);
    });
}

TEST_CASE("the older spellings ask and begin as the newer ones do") {
    World world("lazy");
    const CUstream p = world.device.stream();
    using Begin = CUresult(CUDAAPI*)(CUstream);
    using Info = CUresult(CUDAAPI*)(CUstream, CUstreamCaptureStatus*, cuuint64_t*);
    void* function = nullptr;
    REQUIRE(world.api.get_proc_address("cuStreamBeginCapture", &function, 10000, 0, nullptr) == CUDA_SUCCESS);
    CHECK(reinterpret_cast<Begin>(function)(p) == CUDA_SUCCESS);
    REQUIRE(world.api.get_proc_address("cuStreamGetCaptureInfo", &function, 10010, 0, nullptr) ==
            CUDA_SUCCESS);
    CUstreamCaptureStatus status{};
    cuuint64_t id = 0;
    CHECK(reinterpret_cast<Info>(function)(p, &status, &id) == CUDA_SUCCESS);
    CHECK(status == active);
    CHECK(id != 0);
    check_intact(world, p);
}

TEST_CASE("destroying a stream gives up the capture that it began") {
    under_each_policy([](World& world) {
        const CUstream q = world.device.stream();
        const CUevent event = world.device.event();
        CUstream p = nullptr;
        world.api.cuStreamCreate(&p, CU_STREAM_NON_BLOCKING);
        world.api.cuStreamBeginCapture(p, global_mode);
        world.api.cuEventRecord(event, p);
        world.api.cuStreamWaitEvent(q, event, 0);
        CHECK(status_of(world, q) == active);
        CHECK(world.api.cuStreamDestroy(p) == CUDA_SUCCESS);
        CHECK(status_of(world, q) == none);
        CUdeviceptr address = 0;
        CHECK(world.api.cuMemAlloc(&address, 4) == CUDA_SUCCESS);  // no capture is active any more
        CHECK(world.api.cuMemFree(address) == CUDA_SUCCESS);
    });
}

// Programming guide: placing a stream into capture mode severs the dependency on work enqueued on it before.
TEST_CASE("work that was on the stream before the capture goes on beside it") {
    under_each_policy([](World& world) {
        float* x = world.pinned();
        const CUstream p = world.device.stream();
        world.increment(x, p);
        const Graph graph(world, captured(world, p, [&] { world.twice(x, p); }));
        CHECK(graph.before(0).empty());
        CHECK(world.increment(x, p) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
        CHECK(*x == 2.0F);
    });
}
