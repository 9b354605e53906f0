#include <atomic>
#include <latch>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>

#include <bascule/jit/memory_cache.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

CacheKey key(const std::string& text) { return {text, 1, 1}; }

std::shared_ptr<const Image> image_with(const std::string& ptx) {
    auto image = std::make_shared<Image>();
    image->ptx = ptx;
    return image;
}

constexpr int thread_count = 8;

TEST_CASE("what one thread makes, all that ask meanwhile wait for") {
    MemoryCache cache;
    std::atomic<int> made{0};
    std::latch all_ask(thread_count);
    std::vector<std::shared_ptr<const Image>> got(thread_count);
    std::vector<std::thread> threads;
    for (int i = 0; i < thread_count; ++i) {
        threads.emplace_back([&, i] {
            all_ask.arrive_and_wait();
            while (got[static_cast<std::size_t>(i)] == nullptr) {
                cache.run_once(key("a"), [&] {
                    if (cache.find(key("a"), "") != nullptr) return;
                    ++made;
                    cache.keep(key("a"), {image_with("x"), nullptr});
                });
                got[static_cast<std::size_t>(i)] = cache.find(key("a"), "");
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(made == 1);
    for (const auto& image : got) CHECK(image == got[0]);
}

TEST_CASE("a failure reaches all who wait, and is not kept") {
    MemoryCache cache;
    std::latch leader_makes(1), follower_asks(1);
    std::atomic<int> failures{0};
    const auto ask = [&](const std::function<void()>& make) {
        try {
            cache.run_once(key("a"), make);
        } catch (const std::runtime_error& error) {
            if (error.what() == std::string("the leader's")) ++failures;
        }
    };
    std::thread leader([&] {
        ask([&] {
            leader_makes.count_down();
            follower_asks.wait();
            throw std::runtime_error("the leader's");
        });
    });
    leader_makes.wait();
    // The follower finds the leader at work, or its failure forgotten: then it fails by itself.
    std::thread follower([&] {
        follower_asks.count_down();
        ask([&] { throw std::runtime_error("the leader's"); });
    });
    leader.join();
    follower.join();
    CHECK(failures == 2);
    CHECK(cache.run_once(key("a"), [] {}));
}

TEST_CASE("keys with equal hashes and different texts are different") {
    MemoryCache cache;
    cache.keep(key("a"), {image_with("of a"), nullptr});
    CHECK(cache.find(key("b"), "") == nullptr);
    CHECK(cache.find(key("a"), "")->ptx == "of a");
    cache.clear();
    CHECK(cache.find(key("a"), "") == nullptr);
}

TEST_CASE("what asks for itself while it is made runs again instead of waiting for ever") {
    MemoryCache cache;
    int runs = 0;
    CHECK(cache.run_once(key("a"), [&] {
        ++runs;
        CHECK(cache.run_once(key("a"), [&] { ++runs; }));
    }));
    CHECK(runs == 2);
}

TEST_CASE("eight header states of one program are kept, and the oldest gives way") {
    const TemporaryDirectory directory;
    MemoryCache cache;
    const auto entry = [&](int number) {
        auto headers = std::make_shared<HeaderManifest>();
        headers->user.places.push_back({directory.path() + "/" + std::to_string(number), PlaceKind::file});
        return MemoryCache::Entry{image_with(std::to_string(number)), headers};
    };
    for (int number = 0; number < 9; ++number) cache.keep(key("a"), entry(number));
    CHECK(cache.find(key("a"), "") == nullptr);
    directory.write("3", "");
    REQUIRE(cache.find(key("a"), "") != nullptr);
    CHECK(cache.find(key("a"), "")->ptx == "3");
    std::filesystem::remove(directory.path() + "/3");
    directory.write("0", "");
    CHECK(cache.find(key("a"), "") == nullptr);
}

TEST_CASE("a child that was forked while another thread made an image makes it itself") {
    MemoryCache cache;
    std::latch leader_makes(1), child_is_done(1);
    std::thread leader([&] {
        cache.run_once(key("a"), [&] {
            leader_makes.count_down();
            child_is_done.wait();
        });
    });
    leader_makes.wait();
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);  // one that waits for the parent's thread would wait for ever
        bool ran = false;
        cache.run_once(key("a"), [&] { ran = true; });
        _exit(ran ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    child_is_done.count_down();
    leader.join();
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace bascule::testing
