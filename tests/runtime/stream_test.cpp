#include <utility>

#include <doctest/doctest.h>

#include <bascule/runtime/streams/stream.hpp>

#include "support.hpp"

using namespace bascule;

TEST_CASE("handles_0_and_1_are_both_the_legacy_default_stream") {
    const Device device(0);
    CHECK(StreamRef(0, device) == StreamRef(1, device));
    CHECK(StreamRef(0, device).handle() == 1);
    CHECK(StreamRef::legacy_default(device).handle() == 1);
    CHECK(StreamRef::per_thread_default(device).handle() == 2);
    CHECK_FALSE(StreamRef(1, device) == StreamRef(2, device));
}

TEST_CASE("a_stream_has_a_handle_of_its_own_and_moves_with_it") {
    Stream first;
    Stream second;
    CHECK(first.ref().handle() > 2);
    CHECK(first.ref().handle() != second.ref().handle());
    const std::uint64_t handle = first.ref().handle();
    const Stream moved = std::move(first);
    CHECK(moved.ref().handle() == handle);
}

TEST_CASE("a_stream_belongs_to_the_device_it_was_made_on") {
    const Device device(0);
    const Stream stream(device);
    CHECK(device_of_stream(stream.ref().handle(), device) == device);
    CHECK(device_of_stream(1, device) == device);
}

TEST_CASE("a_stream_waits_for_another_and_the_host_for_it") {
    testing::Addition addition;
    const Stream later;
    const testing::OperationTrace trace;
    addition.p.wait(addition.p);  // no call: a stream never waits for itself
    later.wait(addition.p);
    addition.names[later.ref().handle()] = "later";
    CHECK(trace.spelled(addition.names) == "R(e1,p) W(e1,later)");
    later.synchronize();
    CHECK(later.ref().query());
}
