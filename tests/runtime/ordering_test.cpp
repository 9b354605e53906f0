// The rules of order as recorded operations. P: the producers' streams; C: the launch's; R(e,s): event e
// recorded on s; W(e,s): s waits for e; L(s): a launch.
#include <optional>

#include <doctest/doctest.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/streams/ordering.hpp>

#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

namespace {

struct Fixture : Addition {
    StreamRef C = launch_stream;

    Fixture() {
        kernel.loaded(device);
        names.insert({{1, "legacy"}, {2, "thread"}});
    }

    /// One launch on `stream` with the arrays' streams; 0 names none.
    void launch(StreamRef stream, std::uint64_t of_x, std::uint64_t of_y, std::uint64_t of_z,
                LaunchConfig config = {.grid = {1}, .block = {64}}) {
        ArgumentPack args(kernel.signature(device));
        set(args, of_x, of_y, of_z);
        kernel.launch(stream, config, args);
    }

    std::string traced(StreamRef stream, std::uint64_t of_x, std::uint64_t of_y, std::uint64_t of_z) {
        const Trace trace;
        launch(stream, of_x, of_y, of_z);
        return trace.spelled(names);
    }
};

/// The handle of a stream that is destroyed: every call of the driver on it fails.
std::uint64_t destroyed_stream() { return Stream().ref().handle(); }

}  // namespace

TEST_CASE("rule 1: without producers there is the launch alone") {
    Fixture f;
    CHECK(f.traced(f.C, 0, 0, 0) == "L(C)");
}

TEST_CASE("rule 2: the launch waits for the producer, and the producer for the launch") {
    Fixture f;
    const std::uint64_t p = f.p.ref().handle();
    // The same event may serve both ways: a wait takes its state at the call.
    const std::string order = f.traced(f.C, 0, 0, p);
    CHECK(
        (order == "R(e1,p) W(e1,C) L(C) R(e2,C) W(e2,p)" || order == "R(e1,p) W(e1,C) L(C) R(e1,C) W(e1,p)"));
}

TEST_CASE("rule 2: a const argument is ordered in both directions too") {
    Fixture f;
    const std::string order = f.traced(f.C, f.p.ref().handle(), 0, 0);
    CHECK(order.find("W(e1,C) L(C)") != std::string::npos);
    CHECK(order.rfind("p)") == order.size() - 2);
}

TEST_CASE("rule 2: one fence serves every producer") {
    Fixture f;
    const std::string order = f.traced(f.C, f.p.ref().handle(), f.q.ref().handle(), 0);
    CHECK(order == "R(e1,p) W(e1,C) R(e1,q) W(e1,C) L(C) R(e1,C) W(e1,p) W(e1,q)");
}

TEST_CASE("rule 3: a producer that is the launch's own stream costs nothing") {
    Fixture f;
    const std::uint64_t c = f.C.handle();
    CHECK(f.traced(f.C, c, c, c) == "L(C)");
}

TEST_CASE("rule 4: several arrays on one stream cost one record, one wait and one fence") {
    Fixture f;
    const std::uint64_t p = f.p.ref().handle();
    CHECK(f.traced(f.C, p, p, p) == "R(e1,p) W(e1,C) L(C) R(e1,C) W(e1,p)");
}

TEST_CASE("rule 5: the legacy default stream is itself under both its names") {
    Fixture f;
    CHECK(f.traced(StreamRef(0, f.device), 1, 1, 1) == "L(legacy)");
    CHECK(f.traced(StreamRef(1, f.device), 1, 0, 0) == "L(legacy)");
    CHECK(f.traced(StreamRef(2, f.device), 2, 0, 0) == "L(thread)");
}

TEST_CASE("rule 5: the default streams are ordered like others when the launch is elsewhere") {
    Fixture f;
    CHECK(f.traced(f.C, 1, 0, 0) == "R(e1,legacy) W(e1,C) L(C) R(e1,C) W(e1,legacy)");
    CHECK(f.traced(f.C, 2, 0, 0) == "R(e1,thread) W(e1,C) L(C) R(e1,C) W(e1,thread)");
    CHECK(f.traced(StreamRef(1, f.device), 2, 0, 0) ==
          "R(e1,thread) W(e1,legacy) L(legacy) R(e1,legacy) W(e1,thread)");
}

TEST_CASE("rule 7: a launch that is refused leaves no operation behind") {
    Fixture f;
    const Trace trace;
    CHECK_THROWS_AS(f.launch(f.C, f.p.ref().handle(), 0, 0, {.grid = {1}, .block = {2048}}), ArgumentError);
    CHECK_THROWS_AS(f.launch(f.C, f.p.ref().handle(), 0, 0, {.grid = {0}, .block = {64}}), ArgumentError);
    CHECK(trace.spelled(f.names).empty());
}

TEST_CASE("rule 8: a producer stream that cannot be recorded stops the launch") {
    Fixture f;
    const std::uint64_t gone = destroyed_stream();
    const Trace trace;
    try {
        f.launch(f.C, 0, gone, 0);
        FAIL("no error");
    } catch (const CudaError& error) {
        const std::string message = error.what();
        CHECK(message.find("argument 2") != std::string::npos);
        CHECK(message.find("still alive") != std::string::npos);
    }
    CHECK(trace.spelled(f.names).find("L(") == std::string::npos);
}

TEST_CASE("rule 8: the event of a failed wait is used again") {
    Fixture f;
    const std::uint64_t gone = destroyed_stream();
    f.launch(f.C, f.p.ref().handle(), 0, 0);  // the pool has an event now
    CHECK_THROWS_AS(f.launch(f.C, gone, 0, 0), CudaError);
    CHECK(calls_of("cuEventCreate", [&] { f.launch(f.C, f.p.ref().handle(), 0, 0); }) == 0);
}

TEST_CASE("rule 10: when a producer cannot be held back the host waits for the launch") {
    Fixture f;
    const std::uint64_t gone = destroyed_stream();
    const Producer producer{gone, 0};
    const std::uint64_t waits = calls_of("cuStreamSynchronize", [&] {
        CHECK_THROWS_AS(order_producers_after(f.C, {&producer, 1}), CudaError);
    });
    CHECK(waits == 1);
}

TEST_CASE("a warmed launch makes two operations a foreign stream, one more, and one query") {
    Fixture f;
    const std::uint64_t p = f.p.ref().handle();
    const std::uint64_t q = f.q.ref().handle();
    f.launch(f.C, p, q, 0);
    const auto calls = [&](const char* function) {
        return calls_of(function, [&] { f.launch(f.C, p, q, 0); });
    };
    CHECK(calls("cuEventRecord") == 3);
    CHECK(calls("cuStreamWaitEvent") == 4);
    CHECK(calls("cuLaunchKernelEx") == 1);
    CHECK(calls("cuCtxGetCurrent") == 1);
    for (const char* none :
         {"cuCtxSetCurrent", "cuEventCreate", "cuEventDestroy", "cuEventQuery", "cuStreamQuery",
          "cuStreamSynchronize", "cuPointerGetAttributes", "cuKernelGetAttribute"}) {
        CAPTURE(none);
        CHECK(calls(none) == 0);
    }
}

TEST_CASE("a copy is ordered with its producers as a launch is") {
    Fixture f;
    const Producer producer{f.p.ref().handle(), 0};
    const std::vector<float> values = counting(64);
    const Trace trace;
    copy_to_device(f.C, f.x.address(), values.data(), 256, {&producer, 1});
    CHECK(trace.spelled(f.names) == "R(e1,p) W(e1,C) R(e1,C) W(e1,p)");
}

TEST_CASE(
    "the stream is the one given, else the current one, else the arrays' common one, else the default") {
    const Device device(0);
    const StreamRef given(0x100, device);
    const StreamRef current(0x200, device);
    CHECK(choose_stream(given, current, 0x300, device) == given);
    CHECK(choose_stream(std::nullopt, current, 0x300, device) == current);
    CHECK(choose_stream(std::nullopt, std::nullopt, 0x300, device).handle() == 0x300);
    CHECK(choose_stream(std::nullopt, std::nullopt, std::nullopt, device).handle() == 1);
    CHECK(choose_stream(StreamRef(0, device), current, 0x300, device).handle() == 1);
}

TEST_CASE("how a stream was chosen is said by the same rule") {
    const Device device(0);
    const StreamRef some(0x100, device);
    CHECK(how_chosen(some, some, 0x300) == StreamChoice::given);
    CHECK(how_chosen(std::nullopt, some, 0x300) == StreamChoice::current);
    CHECK(how_chosen(std::nullopt, std::nullopt, 0x300) == StreamChoice::common_producer);
    CHECK(how_chosen(std::nullopt, std::nullopt, std::nullopt) == StreamChoice::device_default);
}

TEST_CASE("the default stream is the one that was configured") {
    const Device device(0);
    set_default_stream(DefaultStream::per_thread);
    CHECK(choose_stream(std::nullopt, std::nullopt, std::nullopt, device).handle() == 2);
    set_default_stream(DefaultStream::legacy);
    CHECK(choose_stream(std::nullopt, std::nullopt, std::nullopt, device).handle() == 1);
}

TEST_CASE("rule 12: a stream of another device is waited for even if its handle is the launch stream's") {
    const Device device(0);
    const StreamRef legacy = StreamRef::legacy_default(device);
    CHECK_FALSE(needs_wait({1, 0}, legacy));
    CHECK_FALSE(needs_wait({0, 0}, legacy));
    CHECK_FALSE(needs_wait({1, 0, 0}, legacy));
    CHECK(needs_wait({1, 0, 1}, legacy));
    CHECK(needs_wait({2, 0}, legacy));
}
