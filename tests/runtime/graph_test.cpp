// bascule::Graph from C++: captures and launches. tests/python/graphs tests rule 13 and kept owners.
#include <doctest/doctest.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/graphs/graph.hpp>
#include <bascule/runtime/kernels/library.hpp>
#include <bascule/runtime/streams/event.hpp>
#include <bascule/runtime/streams/stream_capture.hpp>

#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

namespace {

constexpr LaunchConfig one_block{.grid = {1}, .block = {64}};

struct Fixture {
    TestModule program{"__global__ void shift(float* x) { x[threadIdx.x] += 1; }"};
    Kernel kernel = program.module.kernel("shift");
    Device device{0};
    Stream c, p, q;

    Fixture() { kernel.loaded(device); }

    void launch(StreamRef stream, const DeviceBuffer& x) {
        ArgumentPack args(kernel.signature(device));
        args.set(0, floats(x));
        kernel.launch(stream, one_block, args);
    }
};

}  // namespace

TEST_CASE("a graph runs what was captured, each time it is launched") {
    Fixture f;
    const DeviceBuffer x = on_device(f.c, std::vector<float>(64, 1.0F));
    f.c.ref().synchronize();
    Graph graph;
    CHECK_THROWS_WITH_AS(graph.launch(f.c), doctest::Contains("capture something first"), Error);
    CHECK_THROWS_WITH_AS(graph.end(), doctest::Contains("call begin first"), Error);
    graph.begin();
    CHECK(graph.capturing());
    CHECK_THROWS_WITH_AS(graph.launch(f.c), doctest::Contains("being captured"), Error);
    f.launch(graph.stream(), x);
    f.launch(graph.stream(), x);
    graph.end();
    CHECK(graph.size() == 2);
    CHECK(on_host(f.c, x)[0] == 1.0F);
    graph.launch(f.c);
    graph.launch(f.p);
    f.p.ref().synchronize();
    CHECK(on_host(f.c, x) == std::vector<float>(64, 5.0F));
}

TEST_CASE("a second capture replaces the first, in its place where the shape is the same") {
    Fixture f;
    const DeviceBuffer x = on_device(f.c, std::vector<float>(64, 0.0F));
    const DeviceBuffer y = on_device(f.c, std::vector<float>(64, 0.0F));
    f.c.ref().synchronize();
    Graph graph;
    const auto capture = [&](const DeviceBuffer& buffer, int launches) {
        graph.begin();
        for (int i = 0; i < launches; ++i) f.launch(graph.stream(), buffer);
        graph.end();
    };
    capture(x, 1);
    graph.launch(f.c);
    CHECK(graph.updates() == 0);
    capture(y, 1);
    CHECK(graph.updates() == 1);
    graph.launch(f.c);
    capture(y, 2);
    CHECK(graph.updates() == 1);
    graph.launch(f.c);
    CHECK(on_host(f.c, x)[63] == 1.0F);
    CHECK(on_host(f.c, y)[63] == 3.0F);
    graph.begin();
    f.launch(graph.stream(), x);
    graph.cancel();
    CHECK(graph.size() == 2);
}

TEST_CASE("a capture's number is the same for every stream that is in it") {
    Fixture f;
    Graph graph;
    CHECK(capture_of(graph.stream()) == CaptureState{});
    graph.begin();
    const CaptureState state = capture_of(graph.stream());
    CHECK(state.status == CaptureState::Status::active);
    const Event forked(f.device, Event::Timing::off);
    const Event joined(f.device, Event::Timing::off);
    forked.ref().record(graph.stream());
    f.p.ref().wait(forked);
    CHECK(capture_of(f.p) == state);
    CHECK(capture_of(f.q) == CaptureState{});
    joined.ref().record(f.p);
    graph.stream().wait(joined);
    graph.end();
    CHECK(capture_of(f.p) == CaptureState{});
}
