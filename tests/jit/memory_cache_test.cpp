#include <atomic>
#include <deque>
#include <exception>
#include <fstream>
#include <functional>
#include <latch>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <doctest/doctest.h>

#include <bascule/jit/cache/memory_cache.hpp>

#include "lambda_job.hpp"
#include "support.hpp"

namespace bascule::testing {
namespace {

CacheKey key(const std::string& text) { return {text, {1, 1}}; }

std::shared_ptr<const Image> image_with(const std::string& ptx) {
    auto image = std::make_shared<Image>();
    image->ptx = ptx;
    return image;
}

/// Runs `make` for "a" unless another thread does. True when it ran here.
bool run_once(MemoryCache& cache, const std::function<void()>& make) {
    bool ran = false;
    cache.run_once(key("a"), "a",
                   std::make_shared<LambdaJob>([] { return false; },
                                               [&] {
                                                   ran = true;
                                                   make();
                                               }));
    return ran;
}

/// Whether a thread of this process sleeps in the kernel, as one does that waits for another.
bool sleeps(pid_t thread) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string text;
    std::getline(file, text);
    const std::size_t name_ends = text.rfind(')');
    return name_ends != std::string::npos && text.compare(name_ends, 4, ") S ") == 0;
}

/// A thread that asks for "a". Once this is constructed, the thread waits inside run_once or has returned
/// from it.
class Asking {
  public:
    Asking(MemoryCache& cache, std::function<void()> make)
        : thread_([this, &cache, make = std::move(make)] {
              id_ = gettid();
              try {
                  made_it = run_once(cache, make);
              } catch (...) {
                  error = std::current_exception();
              }
              returned_ = true;
          }) {
        while (!returned_ && !(id_ != 0 && sleeps(id_))) std::this_thread::yield();
    }
    bool waits() const { return !returned_; }
    void join() { thread_.join(); }

    bool made_it = false;
    std::exception_ptr error;

  private:
    std::atomic<pid_t> id_{0};
    std::atomic<bool> returned_{false};
    std::thread thread_;
};

TEST_CASE("what one thread makes, all that ask meanwhile wait for") {
    MemoryCache cache;
    std::atomic<int> made{0};
    std::latch all_have_asked(1);
    Asking leader(cache, [&] {
        ++made;
        all_have_asked.wait();
        cache.keep(key("a"), {image_with("x"), nullptr});
    });
    std::deque<Asking> followers;
    for (int i = 0; i < 7; ++i) followers.emplace_back(cache, [&] { ++made; });
    for (const Asking& follower : followers) CHECK(follower.waits());
    all_have_asked.count_down();
    leader.join();
    CHECK(leader.made_it);
    for (Asking& follower : followers) {
        follower.join();
        CHECK_FALSE(follower.made_it);
    }
    CHECK(made == 1);
    CHECK(cache.find(key("a"), {""}).image->ptx == "x");
}

TEST_CASE("a failure reaches all who wait, and is not kept") {
    MemoryCache cache;
    std::latch all_have_asked(1);
    Asking leader(cache, [&] {
        all_have_asked.wait();
        throw std::runtime_error("the leader's");
    });
    std::deque<Asking> followers;
    for (int i = 0; i < 3; ++i) {
        followers.emplace_back(cache, [] { throw std::runtime_error("a follower's own"); });
    }
    for (const Asking& follower : followers) CHECK(follower.waits());
    all_have_asked.count_down();
    leader.join();
    REQUIRE(leader.error != nullptr);
    CHECK_THROWS_WITH(std::rethrow_exception(leader.error), "the leader's");
    for (Asking& follower : followers) {
        follower.join();
        CHECK(follower.error == leader.error);  // the same object, and not only the same text
    }
    CHECK(run_once(cache, [] {}));
}

TEST_CASE("keys with equal hashes and different texts are different") {
    MemoryCache cache;
    cache.keep(key("a"), {image_with("of a"), nullptr});
    CHECK(cache.find(key("b"), {""}).image == nullptr);
    CHECK(cache.find(key("a"), {""}).image->ptx == "of a");
    cache.clear();
    CHECK(cache.find(key("a"), {""}).image == nullptr);
}

TEST_CASE("what asks for itself while it is made runs again instead of waiting for ever") {
    MemoryCache cache;
    int runs = 0;
    CHECK(run_once(cache, [&] {
        ++runs;
        CHECK(run_once(cache, [&] { ++runs; }));
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
    CHECK(cache.find(key("a"), {""}).image == nullptr);
    directory.write("3", "");
    REQUIRE(cache.find(key("a"), {""}).image != nullptr);
    CHECK(cache.find(key("a"), {""}).image->ptx == "3");
    std::filesystem::remove(directory.path() + "/3");
    directory.write("0", "");
    CHECK(cache.find(key("a"), {""}).image == nullptr);
}

TEST_CASE("a child that was forked while another thread made an image makes it itself") {
    MemoryCache cache;
    std::latch leader_makes(1), child_is_done(1);
    std::thread leader([&] {
        run_once(cache, [&] {
            leader_makes.count_down();
            child_is_done.wait();
        });
    });
    leader_makes.wait();
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);  // one that waits for the parent's thread would wait for ever
        bool ran = false;
        run_once(cache, [&] { ran = true; });
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
