#include <atomic>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <bascule/jit/memory_cache.hpp>

namespace bascule {
namespace {

CacheKey key(const std::string& text) { return {text, 1, 1}; }

std::shared_ptr<const Image> image_with(const std::string& ptx) {
    auto image = std::make_shared<Image>();
    image->ptx = ptx;
    return image;
}

constexpr int thread_count = 8;

TEST_CASE("what one thread makes, all that ask meanwhile share") {
    MemoryCache cache;
    std::atomic<int> made{0}, made_here{0};
    std::latch all_ask(thread_count);
    std::vector<std::shared_ptr<const Image>> got(thread_count);
    std::vector<std::thread> threads;
    for (int i = 0; i < thread_count; ++i) {
        threads.emplace_back([&, i] {
            all_ask.arrive_and_wait();
            const MemoryCache::Outcome outcome = cache.once(key("a"), [&] {
                ++made;
                return image_with("x");
            });
            if (outcome.made_here) ++made_here;
            got[static_cast<std::size_t>(i)] = outcome.image;
        });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(made == 1);
    CHECK(made_here == 1);
    for (const auto& image : got) CHECK(image == got[0]);
}

TEST_CASE("a failure reaches all who wait, and is not kept") {
    MemoryCache cache;
    std::latch leader_makes(1), follower_asks(1);
    std::atomic<int> failures{0};
    const auto ask = [&](const std::function<MemoryCache::ImagePointer()>& make) {
        try {
            cache.once(key("a"), make);
        } catch (const std::runtime_error& error) {
            if (error.what() == std::string("the leader's")) ++failures;
        }
    };
    std::thread leader([&] {
        ask([&]() -> MemoryCache::ImagePointer {
            leader_makes.count_down();
            follower_asks.wait();
            throw std::runtime_error("the leader's");
        });
    });
    leader_makes.wait();
    // The follower finds the leader at work, or its failure forgotten: then it fails by itself.
    std::thread follower([&] {
        follower_asks.count_down();
        ask([&]() -> MemoryCache::ImagePointer { throw std::runtime_error("the leader's"); });
    });
    leader.join();
    follower.join();
    CHECK(failures == 2);
    CHECK(cache.once(key("a"), [] { return image_with("second try"); }).made_here);
}

TEST_CASE("keys with equal hashes and different texts are different") {
    MemoryCache cache;
    cache.once(key("a"), [] { return image_with("of a"); });
    CHECK(cache.once(key("b"), [] { return image_with("of b"); }).image->ptx == "of b");
    CHECK(cache.once(key("a"), [] { return image_with("again"); }).image->ptx == "of a");
}

TEST_CASE("making may ask for another key, and for its own") {
    MemoryCache cache;
    const auto outcome = cache.once(key("a"), [&] {
        cache.once(key("b"), [] { return image_with("b"); });
        return cache.once(key("a"), [] { return image_with("inner"); }).image;
    });
    CHECK(outcome.image->ptx == "inner");
    CHECK_FALSE(cache.once(key("b"), [] { return image_with("never"); }).made_here);
}

TEST_CASE("what is forgotten is made again, and stays valid for who has it") {
    MemoryCache cache;
    const auto first = cache.once(key("a"), [] { return image_with("first"); }).image;
    cache.forget(key("a"));
    CHECK(cache.once(key("a"), [] { return image_with("second"); }).image->ptx == "second");
    cache.clear();
    CHECK(cache.once(key("a"), [] { return image_with("third"); }).image->ptx == "third");
    CHECK(first->ptx == "first");
}

TEST_CASE("clearing loses nobody who waits") {
    MemoryCache cache;
    std::latch making(1), cleared(1);
    std::thread leader([&] {
        cache.once(key("a"), [&] {
            making.count_down();
            cleared.wait();
            return image_with("x");
        });
    });
    making.wait();
    cache.clear();
    cleared.count_down();
    leader.join();
    CHECK_FALSE(cache.once(key("a"), [] { return image_with("y"); }).made_here);
}

}  // namespace
}  // namespace bascule
