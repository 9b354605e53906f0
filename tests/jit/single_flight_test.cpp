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

#include <bascule/jit/lookup/memory_cache.hpp>

namespace bascule::testing {
namespace {

/// Runs `make` for "a" unless another thread does. Returns true if it ran here.
bool runs_here(SingleFlight& flights, const std::function<void()>& make) {
    bool ran = false;
    flights.run({"a", {1, 1}}, "a", [&] {
        ran = true;
        make();
    });
    return ran;
}

/// True if a thread of this process sleeps in the kernel, as one does that waits for another.
bool sleeps(pid_t thread) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string text;
    std::getline(file, text);
    const std::size_t name_ends = text.rfind(')');
    return name_ends != std::string::npos && text.compare(name_ends, 4, ") S ") == 0;
}

/// A thread that asks for "a". After construction, the thread waits inside runs_here or has returned from it.
class Asking {
  public:
    Asking(SingleFlight& flights, std::function<void()> make)
        : thread_([this, &flights, make = std::move(make)] {
              id_ = gettid();
              try {
                  made_it = runs_here(flights, make);
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
    SingleFlight flights;
    std::atomic<int> made{0};
    std::latch all_have_asked(1);
    Asking leader(flights, [&] {
        ++made;
        all_have_asked.wait();
    });
    std::deque<Asking> followers;
    for (int i = 0; i < 7; ++i) followers.emplace_back(flights, [&] { ++made; });
    for (const Asking& follower : followers) CHECK(follower.waits());
    all_have_asked.count_down();
    leader.join();
    CHECK(leader.made_it);
    for (Asking& follower : followers) {
        follower.join();
        CHECK_FALSE(follower.made_it);
    }
    CHECK(made == 1);
}

TEST_CASE("a failure reaches all who wait, and is not kept") {
    SingleFlight flights;
    std::latch all_have_asked(1);
    Asking leader(flights, [&] {
        all_have_asked.wait();
        throw std::runtime_error("the leader's");
    });
    std::deque<Asking> followers;
    for (int i = 0; i < 3; ++i) {
        followers.emplace_back(flights, [] { throw std::runtime_error("a follower's own"); });
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
    CHECK(runs_here(flights, [] {}));
}

TEST_CASE("what asks for itself while it is made runs again instead of waiting for ever") {
    SingleFlight flights;
    int runs = 0;
    CHECK(runs_here(flights, [&] {
        ++runs;
        CHECK(runs_here(flights, [&] { ++runs; }));
    }));
    CHECK(runs == 2);
}

TEST_CASE("a child that was forked while another thread made an image makes it itself") {
    SingleFlight flights;
    std::latch leader_makes(1), child_is_done(1);
    std::thread leader([&] {
        runs_here(flights, [&] {
            leader_makes.count_down();
            child_is_done.wait();
        });
    });
    leader_makes.wait();
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);  // a wait for the parent's thread would never end
        bool ran = false;
        runs_here(flights, [&] { ran = true; });
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
