#include <thread>

#include <doctest/doctest.h>

#include <bascule/runtime/streams/event.hpp>

#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

TEST_CASE("a_pooled_event_is_used_again") {
    const Device device(0);
    { const PooledEvent first(device); }
    CHECK(calls_of("cuEventCreate", [&] { const PooledEvent second(device); }) == 0);
}

TEST_CASE("two_pooled_events_at_once_are_different") {
    const Device device(0);
    const PooledEvent first(device);
    const PooledEvent second(device);
    CHECK(first.ref().native() != second.ref().native());
}

TEST_CASE("a_thread_that_ends_gives_its_pooled_events_to_the_others") {
    const Device device(0);
    const PooledEvent ours(device);  // leaves no free event in this thread
    CUevent theirs = nullptr;
    std::thread([&] { theirs = PooledEvent(device).ref().native(); }).join();
    CUevent next = nullptr;
    std::thread([&] { next = PooledEvent(device).ref().native(); }).join();
    CHECK(next == theirs);
}

namespace {

/// Made before a thread's first pooled event, and therefore destroyed after the thread's pool.
struct AtTheEnd {
    Device device{0};
    ~AtTheEnd() { const PooledEvent late(device); }
};

}  // namespace

TEST_CASE("a_thread_can_take_pooled_events_until_its_very_end") {
    const Device device(0);
    const auto ending = [] {
        thread_local const AtTheEnd last;
        static_cast<void>(last.device);
        const PooledEvent first(last.device);
    };
    std::thread(ending).join();
    CHECK(calls_of("cuEventCreate", [&] { std::thread(ending).join(); }) == 0);
}
