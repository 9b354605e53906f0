// Graphs as specified by the driver API's "Graph Management", under every policy. Each test names its source.
#include <thread>

#include "capturing.hpp"

using client::captured;
using client::Executable;
using client::Graph;
using client::relaxed_mode;
using client::under_each_policy;
using client::World;

namespace {

/// A graph that increments the value and then doubles it.
CUgraph increment_and_twice(World& world, float* x, CUstream stream) {
    return captured(world, stream, [&] {
        world.increment(x, stream);
        world.twice(x, stream);
    });
}

}  // namespace

// cuGraphLaunch: "Each launch is ordered behind both any previous work in hStream ...".
TEST_CASE("a graph runs as often as it is launched, in the order of its stream") {
    under_each_policy([](World& world) {
        float* x = world.pinned(1.0F);
        const CUstream p = world.device.stream();
        const Graph graph(world, increment_and_twice(world, x, p));
        Executable exec(world, graph);
        CHECK(exec.launch(p) == CUDA_SUCCESS);
        CHECK(world.increment(x, p) == CUDA_SUCCESS);
        CHECK(exec.launch(p) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
        CHECK(*x == ((1 + 1) * 2 + 1 + 1) * 2);
    });
}

// cuGraphLaunch: "... and any previous launches of hGraphExec".
TEST_CASE("launches of one executable graph on two streams follow each other") {
    under_each_policy([](World& world) {
        float* x = world.pinned(1.0F);
        const CUstream p = world.device.stream();
        const CUstream q = world.device.stream();
        const Graph graph(world, increment_and_twice(world, x, p));
        Executable exec(world, graph);
        for (const CUstream stream : {p, q, p, q}) CHECK(exec.launch(stream) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamSynchronize(q) == CUDA_SUCCESS);
        CHECK(*x == 46.0F);  // ((((1 + 1) * 2 + 1) * 2 + 1) * 2 + 1) * 2
    });
}

TEST_CASE("the branches of a graph run beside each other, and a join waits for all of them") {
    under_each_policy([](World& world) {
        float* x = world.pinned();
        float* y = world.pinned();
        const CUdeviceptr both = world.device.floats(2, 0.0F);
        const CUstream p = world.device.stream();
        const CUstream q = world.device.stream();
        const Graph graph(world, captured(world, p, [&] {
                              world.increment(x, p);
                              world.order(p, q);
                              world.increment(y, q);
                              world.twice(y, q);
                              world.twice(x, p);
                              world.order(q, p);
                              world.api.cuMemcpyHtoDAsync(both, x, 4, p);
                              world.api.cuMemcpyHtoDAsync(both + 4, y, 4, p);
                          }));
        Executable exec(world, graph);
        for (int i = 0; i < 3; ++i) CHECK(exec.launch(q) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamSynchronize(q) == CUDA_SUCCESS);
        CHECK(world.device.read(both) == 14.0F);
        CHECK(world.device.read(both + 4) == 14.0F);
    });
}

TEST_CASE("under `threads` a kernel in one branch waits for another branch's kernel") {
    World world("threads");
    float* flag = world.pinned();
    const CUstream p = world.device.stream();
    const CUstream q = world.device.stream();
    const Graph graph(world, captured(world, p, [&] {
                          world.order(p, q);
                          world.device.launch("await", p, reinterpret_cast<CUdeviceptr>(flag));
                          world.device.launch("raise", q, reinterpret_cast<CUdeviceptr>(flag));
                          world.order(q, p);
                      }));
    Executable exec(world, graph);
    CHECK(exec.launch(p) == CUDA_SUCCESS);
    CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
}

// "Stream synchronization behavior": a launch is an operation of its stream, so the legacy stream orders it.
TEST_CASE("a graph on the legacy default stream is ordered with blocking streams") {
    under_each_policy([](World& world) {
        float* x = world.pinned();
        const CUstream blocking = world.device.stream(CU_STREAM_DEFAULT);
        const CUstream p = world.device.stream();
        const Graph graph(world, captured(world, p, [&] { world.twice(x, p); }));
        Executable exec(world, graph);
        world.increment(x, blocking);
        CHECK(exec.launch(nullptr) == CUDA_SUCCESS);
        world.increment(x, blocking);
        CHECK(exec.launch(CU_STREAM_LEGACY) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
        CHECK(*x == 6.0F);
    });
}

TEST_CASE("events see a graph launch as one operation of its stream") {
    under_each_policy([](World& world) {
        float* x = world.pinned();
        const CUstream p = world.device.stream();
        const CUstream q = world.device.stream();
        const CUevent event = world.device.event();
        const Graph graph(world, captured(world, p, [&] {
                              world.increment(x, p);
                              world.increment(x, p);
                          }));
        Executable exec(world, graph);
        CHECK(exec.launch(p) == CUDA_SUCCESS);
        world.api.cuEventRecord(event, p);
        world.api.cuStreamWaitEvent(q, event, 0);
        world.twice(x, q);
        CHECK(world.api.cuStreamSynchronize(q) == CUDA_SUCCESS);
        CHECK(*x == 4.0F);
    });
}

// cuLaunchKernel copies its parameters; a node has their values from the capture.
TEST_CASE("parameters are copied at the capture, memory is read at the launch") {
    under_each_policy([](World& world) {
        float* x = world.pinned();
        const CUdeviceptr y = world.device.floats(1, 0.0F);
        float pageable = 1.0F;
        const CUstream p = world.device.stream();
        auto address = reinterpret_cast<CUdeviceptr>(x);
        const Graph graph(world, captured(world, p, [&] {
                              CHECK(world.device.launch("increment", p, address) == CUDA_SUCCESS);
                              CHECK(world.api.cuMemcpyHtoDAsync(y, &pageable, 4, p) == CUDA_SUCCESS);
                          }));
        address = 0;
        pageable = 5.0F;
        *x = 3.0F;
        Executable exec(world, graph);
        CHECK(exec.launch(p) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
        CHECK(*x == 4.0F);
        CHECK(world.device.read(y) == 5.0F);
    });
}

// cuGraphDestroy, cuGraphExecDestroy: "if the executable graph is in-flight, it will not be terminated".
TEST_CASE("graphs may be destroyed while what was launched from them runs") {
    under_each_policy([](World& world) {
        float* x = world.pinned();
        const CUstream p = world.device.stream();
        {
            const Graph graph(world, captured(world, p, [&] {
                                  world.increment(x, p);
                                  world.increment(x, p);
                              }));
            Executable exec(world, graph);
            CHECK(exec.launch(p) == CUDA_SUCCESS);
        }
        CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
        CHECK(*x == 2.0F);
        CHECK(world.api.cuGraphLaunch(reinterpret_cast<CUgraphExec>(x), p) == CUDA_ERROR_INVALID_VALUE);
        CHECK(world.api.cuGraphDestroy(reinterpret_cast<CUgraph>(x)) == CUDA_ERROR_INVALID_VALUE);
    });
}

TEST_CASE("a graph without nodes can be made, instantiated and launched") {
    under_each_policy([](World& world) {
        float* x = world.pinned();
        CUgraph made = nullptr;
        REQUIRE(world.api.cuGraphCreate(&made, 0) == CUDA_SUCCESS);
        const Graph graph(world, made);
        CHECK(graph.nodes().empty());
        CUgraphExec exec = nullptr;
        CUDA_GRAPH_INSTANTIATE_PARAMS parameters = {};
        parameters.result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
        const CUstream p = world.device.stream();
        CHECK(world.api.cuGraphInstantiateWithParams(&exec, graph, &parameters) == CUDA_SUCCESS);
        CHECK(parameters.result_out == CUDA_GRAPH_INSTANTIATE_SUCCESS);
        world.increment(x, p);
        CHECK(world.api.cuGraphUpload(exec, p) == CUDA_SUCCESS);
        CHECK(world.api.cuGraphLaunch(exec, p) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
        CHECK(*x == 1.0F);
        CHECK(world.api.cuGraphExecDestroy(exec) == CUDA_SUCCESS);
        CHECK(world.api.cuGraphExecDestroy(exec) == CUDA_ERROR_INVALID_VALUE);
        CHECK(world.api.cuGraphInstantiateWithFlags(
                  &exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) == CUDA_ERROR_NOT_SUPPORTED);
    });
}

// tests/gpu/captures.py recorded this on an H100. Only cuGraphAddChildGraphNode adds a graph to a capture.
TEST_CASE("an executable graph is not launched on a capturing stream, whose capture it invalidates") {
    under_each_policy([](World& world) {
        float* x = world.pinned(1.0F);
        const CUstream p = world.device.stream();
        const Graph graph(world, increment_and_twice(world, x, p));
        Executable exec(world, graph);
        REQUIRE(world.api.cuStreamBeginCapture(p, client::relaxed_mode) == CUDA_SUCCESS);
        CHECK(exec.launch(p) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        CUgraph ended = nullptr;
        CHECK(world.api.cuStreamEndCapture(p, &ended) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        CHECK(exec.launch(p) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
        CHECK(*x == 4.0F);  // (1 + 1) * 2
    });
}

// cuGraphExecUpdate: "updates the node parameters in the instantiated graph".
TEST_CASE("an update changes what later launches do, not those before") {
    under_each_policy([](World& world) {
        float* x = world.pinned();
        float* y = world.pinned();
        const CUstream p = world.device.stream();
        const auto capture = [&](float* value, const char* last) {
            return captured(world, p, [&] {
                world.increment(value, p);
                world.device.launch(last, p, reinterpret_cast<CUdeviceptr>(value));
            });
        };
        const Graph first(world, capture(x, "twice"));
        const Graph second(world, capture(y, "increment"));
        Executable exec(world, first);
        CHECK(exec.launch(p) == CUDA_SUCCESS);
        CHECK(exec.update(second).result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
        CHECK(exec.launch(p) == CUDA_SUCCESS);
        CHECK(exec.launch(p) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
        CHECK(*x == 2.0F);
        CHECK(*y == 4.0F);
    });
}

// cuGraphExecUpdate: the conditions of each result.
TEST_CASE("an update that would change the graph's shape is refused, with the node, and changes nothing") {
    under_each_policy([](World& world) {
        float* x = world.pinned();
        const CUdeviceptr memory = world.device.floats(64, 0.0F);
        const CUstream p = world.device.stream();
        const CUstream q = world.device.stream();
        const auto in_a_row = [&](int count) {
            return captured(world, p, [&] {
                for (int i = 0; i < count; ++i) world.increment(x, p);
            });
        };
        const Graph three(world, in_a_row(3));
        const Graph two(world, in_a_row(2));
        const Graph forked(world, captured(world, p, [&] {
                               world.increment(x, p);
                               world.order(p, q);
                               world.increment(x, q);
                               world.order(q, p);
                               world.increment(x, p);
                           }));
        const Graph ends(world, captured(world, p, [&] {
                             world.order(p, q);
                             world.increment(x, q);
                             world.increment(x, p);
                             world.increment(x, p);
                             world.order(q, p);
                         }));
        const Graph filled(world, captured(world, p, [&] {
                               world.increment(x, p);
                               world.api.cuMemsetD8Async(memory, 0, 4, p);
                               world.increment(x, p);
                           }));
        Executable exec(world, three);

        auto info = exec.update(two);
        CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
        CHECK(info.errorNode == nullptr);
        info = exec.update(ends);
        CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
        CHECK(info.errorNode == ends.nodes()[2]);
        info = exec.update(filled);
        CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
        CHECK(info.errorNode == filled.nodes()[1]);
        info = exec.update(forked);
        CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
        CHECK(info.errorNode == forked.nodes()[2]);  // there are two nodes before it

        CHECK(exec.launch(p) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
        CHECK(*x == 3.0F);
    });
}

TEST_CASE("the order in which two streams' calls were captured does not matter to an update") {
    under_each_policy([](World& world) {
        float* x = world.pinned();
        float* y = world.pinned();
        const CUstream p = world.device.stream();
        const CUstream q = world.device.stream();
        const auto capture = [&](bool p_first) {
            return captured(world, p, [&] {
                world.order(p, q);
                if (p_first) world.increment(x, p);
                world.twice(y, q);
                world.api.cuMemsetD32Async(reinterpret_cast<CUdeviceptr>(y), 0, 1, q);
                if (!p_first) world.increment(x, p);
                world.order(q, p);
                world.increment(y, p);
            });
        };
        const Graph first(world, capture(true));
        const Graph second(world, capture(false));
        Executable exec(world, first);
        CHECK(exec.update(second).result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
        CHECK(exec.launch(p) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
        CHECK(*x == 1.0F);
        CHECK(*y == 1.0F);
    });
}

// cuGraphExecUpdate, "Limitations".
TEST_CASE(
    "an update cannot move a copy to other kinds of memory, resize rows, or make a launch cooperative") {
    under_each_policy([](World& world) {
        float* pinned = world.pinned();
        float pageable = 2.0F;
        const CUdeviceptr a = world.device.floats(64, 0.0F);
        const CUstream p = world.device.stream();
        const auto copy = [&](const void* from, CUdeviceptr to) {
            return captured(world, p, [&] { world.api.cuMemcpyHtoDAsync(to, from, 4, p); });
        };
        const Graph copied(world, copy(pinned, a));
        Executable copying(world, copied);
        const Graph moved(world, copy(pinned, a + 8));
        CHECK(copying.update(moved).result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
        const Graph from_pageable(world, copy(&pageable, a));
        CHECK(copying.update(from_pageable).result == CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);

        const auto fill = [&](std::size_t width, std::size_t height, unsigned char value) {
            return captured(world, p, [&] { world.api.cuMemsetD2D8Async(a, 32, value, width, height, p); });
        };
        const Graph rows(world, fill(16, 4, 1));
        Executable filling(world, rows);
        const Graph other_value(world, fill(16, 4, 7));
        CHECK(filling.update(other_value).result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
        const Graph other_width(world, fill(8, 4, 7));
        CHECK(filling.update(other_width).result == CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);

        const auto launch = [&](int cooperative) {
            CUlaunchAttribute attribute = {};
            attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
            attribute.value.cooperative = cooperative;
            CUlaunchConfig config = {};
            config.gridDimX = config.gridDimY = config.gridDimZ = 1;
            config.blockDimX = config.blockDimY = config.blockDimZ = 1;
            config.hStream = p;
            config.attrs = &attribute;
            config.numAttrs = 1;
            auto address = a;
            void* parameters[] = {&address};
            return captured(world, p, [&] {
                CHECK(world.api.cuLaunchKernelEx(&config, world.device.kernel("increment"), parameters,
                                                 nullptr) == CUDA_SUCCESS);
            });
        };
        const Graph alone(world, launch(0));
        const Graph together(world, launch(1));
        Executable exec(world, alone);
        const auto info = exec.update(together);
        CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED);
        CHECK(info.errorNode == together.nodes()[0]);
    });
}

TEST_CASE("another device's stream can be part of a capture, and its work runs there") {
    under_each_policy(
        [](World& world) {
            float* x = world.pinned();
            const CUstream p = world.device.stream();
            CUcontext second = nullptr;
            REQUIRE(world.api.cuDevicePrimaryCtxRetain(&second, 1) == CUDA_SUCCESS);
            const CUcontext first = world.context();
            world.api.cuCtxPushCurrent(second);
            CUstream q = nullptr;
            CUevent join = nullptr;
            world.api.cuStreamCreate(&q, CU_STREAM_NON_BLOCKING);
            world.api.cuEventCreate(&join, 0);
            world.api.cuCtxPopCurrent(nullptr);
            const CUevent fork = world.device.event();
            {
                const Graph graph(world, captured(world, p, [&] {
                                      world.increment(x, p);
                                      world.api.cuEventRecord(fork, p);
                                      CHECK(world.api.cuStreamWaitEvent(q, fork, 0) == CUDA_SUCCESS);
                                      world.api.cuCtxPushCurrent(second);
                                      CHECK(world.twice(x, q) == CUDA_SUCCESS);
                                      world.api.cuCtxPopCurrent(nullptr);
                                      CHECK(world.api.cuEventRecord(join, q) == CUDA_SUCCESS);
                                      CHECK(world.api.cuStreamWaitEvent(p, join, 0) == CUDA_SUCCESS);
                                      world.increment(x, p);
                                  }));
                Executable exec(world, graph);
                CHECK(exec.launch(p) == CUDA_SUCCESS);
                CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
                CHECK(*x == 3.0F);
            }
            CHECK(world.context() == first);
            world.api.cuStreamDestroy(q);
            world.api.cuEventDestroy(join);
            world.api.cuDevicePrimaryCtxRelease(1);
        },
        2);
}

TEST_CASE("a fault in a graph is its context's, and what comes after it in the graph is not executed") {
    for (const std::string& policy : client::policies) {
        CAPTURE(policy);
        client::Library library({{"BASCULE_EMULATED_SCHEDULE", policy.c_str()}});
        World world(library);
        float* x = world.pinned();
        const CUstream p = world.device.stream();
        const Graph graph(world, captured(world, p, [&] {
                              world.device.launch("trap", p, reinterpret_cast<CUdeviceptr>(x));
                              world.increment(x, p);
                          }));
        Executable exec(world, graph);
        CHECK(exec.launch(p) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamSynchronize(p) == CUDA_ERROR_ILLEGAL_INSTRUCTION);
        CHECK(*x == 0.0F);
    }
}

TEST_CASE("the trace has a graph launch as one operation") {
    World world("lazy");
    float* x = world.pinned();
    const CUstream p = world.device.stream();
    const Graph graph(world, captured(world, p, [&] {
                          world.increment(x, p);
                          world.increment(x, p);
                      }));
    Executable exec(world, graph);
    world.api.trace(1);
    exec.launch(p);
    world.api.trace(0);
    const auto operations = world.api.operations();
    REQUIRE(operations.size() == 1);
    CHECK(operations[0].kind == BASCULE_EMULATED_GRAPH_LAUNCH);
    CHECK(operations[0].stream == reinterpret_cast<std::uint64_t>(p));
    CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
}

TEST_CASE("two threads launch one executable graph and none of its operations is lost or doubled") {
    under_each_policy([](World& world) {
        constexpr int rounds = 50;
        float* x = world.pinned();
        const CUstream p = world.device.stream();
        const CUstream q = world.device.stream();
        const Graph graph(world, captured(
                                     world, p,
                                     [&] {
                                         world.increment(x, p);
                                         world.increment(x, p);
                                     },
                                     relaxed_mode));
        Executable exec(world, graph);
        const auto launch = [&, context = world.context()](CUstream stream) {
            world.api.cuCtxPushCurrent(context);
            for (int i = 0; i < rounds; ++i) exec.launch(stream);
            world.api.cuCtxPopCurrent(nullptr);
        };
        std::thread other(launch, q);
        launch(p);
        other.join();
        CHECK(world.api.cuCtxSynchronize() == CUDA_SUCCESS);
        CHECK(*x == 4.0F * rounds);
    });
}
