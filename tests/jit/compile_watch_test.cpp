#include <atomic>
#include <chrono>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <doctest/doctest.h>

#include <bascule/jit/lookup/memory_cache.hpp>
#include <bascule/jit/process/compile_thread.hpp>

namespace bascule::testing {
namespace {

thread_local bool watched = false;
std::atomic<bool> interrupts{false};
std::atomic<int> endings{0};
std::string asked_about;
std::latch* counted_down_when_asked = nullptr;

constexpr JitServices services{
    .compile_watch = {[]() noexcept { return watched; },
                      [](const std::string& what, std::chrono::milliseconds) noexcept {
                          asked_about = what;
                          if (auto* latch = std::exchange(counted_down_when_asked, nullptr))
                              latch->count_down();
                          return interrupts.load();
                      },
                      []() noexcept { ++endings; }}};

/// Watches the calling thread during its lifetime.
struct Watched {
    Watched() {
        install(services);
        watched = true;
    }
    ~Watched() { watched = interrupts = false; }
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;
};

CacheKey key() { return {"a", {1, 1}}; }

TEST_CASE("work of a thread that nobody watches runs in it") {
    std::thread::id where;
    run_watched("a.cu", [&] { where = std::this_thread::get_id(); });
    CHECK(where == std::this_thread::get_id());
    CHECK_FALSE(is_compile_thread());
}

TEST_CASE("work of a watched thread runs in another one, which is not watched") {
    const Watched here;
    bool there = false, deeper = false;
    run_watched("a.cu", [&] {
        there = is_compile_thread();
        const auto thread = std::this_thread::get_id();
        run_watched("b.cu", [&] { deeper = std::this_thread::get_id() == thread; });
    });
    CHECK(there);
    CHECK(deeper);
    CHECK_THROWS_WITH(run_watched("a.cu", [] { throw std::runtime_error("the work's"); }), "the work's");
}

TEST_CASE("an interrupted wait ends, and who asks again waits for what goes on") {
    const Watched here;
    SingleFlight flights;
    std::latch may_end(1);
    std::atomic<int> made{0};
    const auto make = [&] {
        may_end.wait();
        ++made;
    };
    const int endings_before = endings;
    interrupts = true;
    for (int i = 0; i < 2; ++i) {
        CHECK_THROWS_WITH_AS(flights.run(key(), "a.cu", make),
                             "NVRTC was compiling a.cu and goes on; its image will be in the cache.",
                             CompileInterrupted);
    }
    CHECK(asked_about == "a.cu");
    CHECK(endings == endings_before + 2);
    interrupts = false;
    counted_down_when_asked = &may_end;  // the call below waits for `make` by then
    flights.run(key(), "a.cu", [&] { ++made; });
    CHECK(made == 1);
}

}  // namespace
}  // namespace bascule::testing
