// bascule::Graph from C++: what is captured, what is ordered around a launch, what is kept. Rule 13.
#include <doctest/doctest.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/elementwise/elementwise.hpp>
#include <bascule/runtime/graphs/graph.hpp>
#include <bascule/runtime/streams/capture.hpp>
#include <bascule/runtime/streams/event.hpp>

#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

namespace {

constexpr LaunchConfig one_block{.grid = {1}, .block = {64}};

struct Fixture {
    TestModule program{
        "__global__ void shift(float* x) { x[threadIdx.x] += 1; }__global__ void never(float* x) { x[0] = 1; "
        "}"};
    Kernel kernel = program.module.kernel("shift");
    Device device{0};
    Stream c, p, q;

    Fixture() { kernel.loaded(device); }

    void launch(const Kernel& launched, StreamRef stream, const DeviceBuffer& x, std::uint64_t of_x,
                const Owners& owners = {}) {
        ArgumentPack args(kernel.signature(device));
        args.set(0, floats(x, of_x));
        launched.launch(stream, one_block, args, owners);
    }
    std::uint64_t handle(const Stream& stream) const { return stream.ref().handle(); }
};

int released = 0;
Owner counted() { return {&released, &count_releases<int>}; }

std::string error_of(const auto& work) {
    try {
        work();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

}  // namespace

TEST_CASE("a graph runs what was captured, each time it is launched") {
    Fixture f;
    const DeviceBuffer x = on_device(f.c, std::vector<float>(64, 1.0F));
    f.c.ref().synchronize();
    Graph graph;
    graph.begin();
    CHECK(graph.capturing());
    f.launch(f.kernel, graph.stream(), x, 0);
    f.launch(f.kernel, graph.stream(), x, 0);
    graph.end();
    CHECK(graph.size() == 2);
    CHECK(on_host(f.c, x)[0] == 1.0F);
    graph.launch(f.c);
    graph.launch(f.p);
    f.p.ref().synchronize();
    CHECK(on_host(f.c, x) == std::vector<float>(64, 5.0F));
}

TEST_CASE(
    "rule 13: inside there is the launch alone, and the producers are ordered around the graph's launch") {
    Fixture f;
    const DeviceBuffer x(256);
    Graph graph;
    graph.begin();
    {
        const Trace trace;
        f.launch(f.kernel, graph.stream(), x, f.handle(f.p));
        CHECK(trace.spelled({{graph.stream().handle(), "G"}}) == "L(G)");
    }
    graph.end();
    const std::uint64_t before = Driver::get().emulated_functions()->call_count("cuEventRecord");
    const std::uint64_t waits = Driver::get().emulated_functions()->call_count("cuStreamWaitEvent");
    graph.launch(f.c);
    CHECK(Driver::get().emulated_functions()->call_count("cuEventRecord") == before + 2);
    CHECK(Driver::get().emulated_functions()->call_count("cuStreamWaitEvent") == waits + 2);
    graph.launch(f.p);  // its own stream: rule 3
    CHECK(Driver::get().emulated_functions()->call_count("cuEventRecord") == before + 2);
    f.p.ref().synchronize();
}

TEST_CASE("a second capture replaces the first, in its place where the shape is the same") {
    Fixture f;
    const DeviceBuffer x = on_device(f.c, std::vector<float>(64, 0.0F));
    const DeviceBuffer y = on_device(f.c, std::vector<float>(64, 0.0F));
    f.c.ref().synchronize();
    Graph graph;
    const auto capture = [&](const DeviceBuffer& buffer, int launches) {
        graph.begin();
        for (int i = 0; i < launches; ++i) f.launch(f.kernel, graph.stream(), buffer, 0);
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
    f.launch(f.kernel, graph.stream(), x, 0);
    graph.cancel();
    CHECK(graph.size() == 2);
}

TEST_CASE("owners are kept by the graph, and by its launches until they are done") {
    Fixture f;
    const DeviceBuffer x(256);
    released = 0;
    {
        Graph graph;
        const Owner owner = counted();
        graph.begin();
        f.launch(f.kernel, graph.stream(), x, 0, owner);
        graph.end();
        synchronize();
        CHECK(released == 0);
        graph.launch(f.c);
    }
    CHECK(released == 0);  // lazy: it has not run
    f.c.ref().synchronize();
    CHECK(released == 1);
    {
        Graph abandoned;
        const Owner owner = counted();
        abandoned.begin();
        f.launch(f.kernel, abandoned.stream(), x, 0, owner);
    }
    CHECK(released == 2);
}

TEST_CASE("what waits or loads code is refused in words, and the capture goes on") {
    Fixture f;
    const DeviceBuffer x = on_device(f.c, std::vector<float>(64, 1.0F));
    f.c.ref().synchronize();
    Graph graph;
    graph.begin();
    std::vector<float> host(64);
    const Event event;
    for (const std::string& error :
         {error_of([&] { graph.stream().synchronize(); }), error_of([&] { f.c.ref().synchronize(); }),
          error_of([&] { f.c.ref().query(); }), error_of([&] { synchronize(f.device); }),
          error_of([&] { event.ref().synchronize(); }),
          error_of([&] { copy_to_host(graph.stream(), host.data(), x.address(), x.bytes()); })}) {
        CAPTURE(error);
        CHECK(error.ends_with("The capture goes on."));
    }
    const std::string unloaded =
        error_of([&] { f.launch(f.program.module.kernel("never"), graph.stream(), x, 0); });
    CHECK(unloaded.find("'never' is not loaded") != std::string::npos);
    CHECK(unloaded.find("kernel.prepare(...)") != std::string::npos);
    CHECK(error_of([&] { graph.launch(f.c); }).find("being captured") != std::string::npos);
    f.launch(f.kernel, graph.stream(), x, 0);
    graph.end();
    CHECK(graph.size() == 1);
    CHECK(error_of([&] { graph.end(); }).find("call begin first") != std::string::npos);
    CHECK(error_of([&] { Graph().launch(f.c); }).find("capture something first") != std::string::npos);
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
