#include <atomic>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <bascule/runtime/lifetime/lifetime.hpp>

#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

namespace {

/// Counts the releases of the owners that it makes.
struct Counter {
    std::atomic<int> released{0};
    Owner owner() {
        return {this, [](void* const* selves, std::size_t count) noexcept {
                    for (std::size_t i = 0; i < count; ++i)
                        static_cast<Counter*>(selves[i])->released.fetch_add(1);
                }};
    }
};

/// Releases owners that earlier tests have kept.
void start_empty() {
    synchronize();
    REQUIRE(owners_held() == 0);
}

/// Replaces one function of the driver during its lifetime.
template <auto member>
class Replaced {
  public:
    using Function = decltype((std::declval<DriverFunctions>().*member).pointer);

    explicit Replaced(Function by) { driver = std::exchange((table().*member).pointer, by); }
    ~Replaced() { (table().*member).pointer = std::exchange(driver, nullptr); }
    Replaced(const Replaced&) = delete;
    Replaced& operator=(const Replaced&) = delete;

    static inline Function driver = nullptr;

  private:
    static DriverFunctions& table() { return const_cast<DriverFunctions&>(Driver::get().api()); }
};

using EventRecord = Replaced<&DriverFunctions::cuEventRecord>;
using EventQuery = Replaced<&DriverFunctions::cuEventQuery>;

std::function<void()> meanwhile;

/// Calls `meanwhile` in a new thread, and waits until that has ended. Does nothing if it is called in that thread,
/// where the driver calls of `meanwhile` would start another.
void do_meanwhile() {
    static thread_local bool inside = false;
    if (inside) return;
    std::thread([] {
        inside = true;
        meanwhile();
    }).join();
}

}  // namespace

TEST_CASE("what is enqueued while a synchronisation waits is not taken for finished") {
    start_empty();
    Counter before;
    Counter meanwhile;
    const Stream stream;
    const Owner first = before.owner();
    const Owner second = meanwhile.owner();
    keep_until_done(stream, first);
    const KeptMark mark = kept_so_far();
    keep_until_done(stream, second);
    release_finished(stream, mark);
    CHECK(before.released == 1);
    CHECK(meanwhile.released == 0);
    stream.ref().synchronize();
}

TEST_CASE("finished owners are let go by later operations without any synchronisation") {
    start_empty();
    Counter counter;
    const Stream stream;
    const Owner owner = counter.owner();
    for (int i = 0; i < 5000; ++i) {
        keep_until_done(stream, owner);
        REQUIRE(owners_held() <= 768);
    }
    CHECK(counter.released > 0);
    stream.ref().synchronize();
    CHECK(counter.released == 5000);
}

TEST_CASE("one marker serves 64 operations, and its event is used again") {
    start_empty();
    Counter counter;
    const Stream stream;
    const Owner owner = counter.owner();
    const auto keep = [&](int operations) {
        for (int i = 0; i < operations; ++i) keep_until_done(stream, owner);
    };
    keep(64);
    CHECK(calls_of("cuEventRecord", [&] { keep(640); }) == 10);
    CHECK(calls_of("cuEventCreate", [&] { keep(640); }) <= 16);
    stream.ref().synchronize();
    CHECK(calls_of("cuEventCreate", [&] { keep(640); }) == 0);
    stream.ref().synchronize();
    CHECK(counter.released == 64 + 3 * 640);
}

TEST_CASE("an operation with many owners keeps them all") {
    start_empty();
    Counter counter;
    const Stream stream;
    const std::vector<void*> objects(200, &counter);
    keep_until_done(stream, {objects.data(), objects.size(), counter.owner().release, 0});
    CHECK(owners_held() == 200);
    stream.ref().synchronize();
    CHECK(counter.released == 200);
}

TEST_CASE("a release may launch again: no lock is held") {
    start_empty();
    static Counter counter;
    static const Stream* stream = nullptr;
    const Stream made;
    stream = &made;
    const Owner chained{nullptr, [](void* const*, std::size_t) noexcept {
                            const Owner next = counter.owner();
                            keep_until_done(*stream, next);
                        }};
    keep_until_done(made, chained);
    made.ref().synchronize();
    made.ref().synchronize();
    CHECK(counter.released == 1);
}

TEST_CASE("threads keep owners on one stream and on their own default streams") {
    start_empty();
    Counter counter;
    const Stream shared;
    const auto work = [&] {
        const Owner owner = counter.owner();
        const StreamRef own = StreamRef::per_thread_default(Device(0));
        for (int i = 0; i < 1000; ++i) {
            keep_until_done(shared, owner);
            keep_until_done(own, owner);
        }
        own.synchronize();
    };
    std::thread first(work);
    std::thread second(work);
    first.join();
    second.join();
    synchronize();
    CHECK(counter.released == 4000);
    CHECK(owners_held() == 0);
}

TEST_CASE("other threads hand owners over while the driver records a marker, or is asked about one") {
    start_empty();
    Counter counter;
    const Stream stream;
    const Owner owner = counter.owner();
    int others = 0;
    meanwhile = [&] {
        keep_until_done(stream, owner);
        ++others;
    };
    {
        const EventRecord record([](CUevent event, CUstream on) {
            do_meanwhile();
            return EventRecord::driver(event, on);
        });
        const EventQuery query([](CUevent event) {
            do_meanwhile();
            return EventQuery::driver(event);
        });
        for (int i = 0; i < 256; ++i) keep_until_done(stream, owner);
    }
    CHECK(others >= 8);
    stream.ref().synchronize();
    CHECK(counter.released == 256 + others);
    CHECK(owners_held() == 0);
}
