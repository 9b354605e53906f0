// Unit tests of the operation graph, with several threads.
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "streams/graph.hpp"

using emulated::streams::Event;
using emulated::streams::Graph;
using emulated::streams::Lanes;
using emulated::streams::Policy;
using emulated::streams::Scheduler;
using emulated::streams::Step;
using emulated::streams::Stream;

namespace {

Stream non_blocking() { return {.blocking = false, .legacy = false, .tail = nullptr, .timeline = {}}; }

/// A graph's operations, each after the one before. There may be more than the driver's queue holds.
std::vector<Step> chain(std::size_t length, const std::function<void()>& work) {
    std::vector<Step> steps(length);
    for (std::size_t i = 0; i < length; ++i) {
        steps[i].work = std::make_shared<const std::function<void()>>(work);
        if (i > 0) steps[i].after = {i - 1};
        steps[i].last = i + 1 == length;
    }
    return steps;
}

/// An operation that another thread has begun and that ends on request.
class Held {
  public:
    Held(Graph& graph, Stream& stream)
        : issuer_([this, &graph, &stream] {
              graph.submit(stream, [this] {
                  begun_.set_value();
                  released_.get_future().wait();
              });
          }) {
        begun_.get_future().wait();
    }
    ~Held() { release(); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

    void release() {
        if (!issuer_.joinable()) return;
        released_.set_value();
        issuer_.join();
    }

  private:
    std::promise<void> begun_, released_;
    std::thread issuer_;
};

}  // namespace

TEST_CASE("while one thread runs an operation another issues, records and queries") {
    Scheduler scheduler(Policy::eager);
    Graph graph(scheduler);
    Stream busy = non_blocking(), idle = non_blocking();
    graph.add(busy);
    graph.add(idle);
    Held held(graph, busy);

    bool ran = false;
    graph.submit(idle, [&] { ran = true; });
    CHECK(ran);
    CHECK(graph.query(idle));
    CHECK_FALSE(graph.query(busy));

    Event mark;
    graph.record(mark, busy);
    CHECK_FALSE(graph.query(mark));
    held.release();
    CHECK(graph.query(mark));
    CHECK(graph.query(busy));
}

TEST_CASE("a stream that waits for what another thread runs goes on when that is done") {
    Scheduler scheduler(Policy::eager);
    Graph graph(scheduler);
    Stream busy = non_blocking(), waiting = non_blocking();
    graph.add(busy);
    graph.add(waiting);
    Held held(graph, busy);
    Event mark;
    graph.record(mark, busy);
    graph.wait(waiting, mark);
    CHECK_FALSE(graph.query(waiting));

    std::atomic<bool> over = false, in_order = false;
    std::thread issuer([&] { graph.submit(waiting, [&] { in_order = over.load(); }); });
    over = true;
    held.release();
    issuer.join();
    CHECK(in_order);
}

TEST_CASE("edges cross contexts") {
    Scheduler scheduler(Policy::lazy);
    Graph one(scheduler), other(scheduler);
    Stream producer = non_blocking(), consumer = non_blocking();
    one.add(producer);
    other.add(consumer);
    std::vector<int> order;
    Event mark;
    one.submit(producer, [&] { order.push_back(1); });
    one.record(mark, producer);
    other.wait(consumer, mark);
    other.submit(consumer, [&] { order.push_back(2); });
    other.synchronize(consumer);
    CHECK(order == std::vector<int>{1, 2});
}

TEST_CASE("what must be alone waits until nothing runs") {
    Scheduler scheduler(Policy::eager);
    Graph graph(scheduler);
    Stream busy = non_blocking();
    graph.add(busy);
    std::atomic<bool> over = false;
    bool alone = false;
    std::thread freeing;
    {
        Held held(graph, busy);
        freeing = std::thread([&] { scheduler.exclusively([&] { alone = over.load(); }); });
        over = true;
    }
    freeing.join();
    CHECK(alone);
}

TEST_CASE("a thread knows that it is inside an operation") {
    Scheduler scheduler(Policy::eager);
    Graph graph(scheduler);
    bool inside = false;
    graph.submit(graph.legacy(), [&] { inside = Scheduler::inside(); });
    CHECK(inside);
    CHECK_FALSE(Scheduler::inside());
}

TEST_CASE("a chain of a hundred thousand operations is forced without a deep stack") {
    Scheduler scheduler(Policy::lazy);
    Graph graph(scheduler);
    Lanes lanes;
    int count = 0;
    graph.launch(graph.legacy(), chain(100000, [&] { ++count; }), lanes);
    CHECK(count == 0);
    graph.synchronize_all();
    CHECK(count == 100000);
}

TEST_CASE("threads that find the queue full wait for the oldest operation, which others may end meanwhile") {
    for (const Policy policy : {Policy::lazy, Policy::threads}) {
        Scheduler scheduler(policy);
        Graph graph(scheduler);
        constexpr int threads = 4;
        constexpr int each = 4000;
        std::atomic<int> count{0};
        std::vector<std::thread> issuing;
        for (int i = 0; i < threads; ++i) {
            issuing.emplace_back([&] {
                Stream stream = non_blocking();
                graph.add(stream);
                for (int k = 0; k < each; ++k)
                    graph.submit(stream, [&] {
                        std::this_thread::yield();
                        ++count;
                    });
                graph.synchronize(stream);
                graph.remove(stream);
            });
        }
        for (std::thread& thread : issuing) thread.join();
        CHECK(count == threads * each);
    }
}

TEST_CASE("a mark passes when the work before it ends, however late it is looked at") {
    Scheduler scheduler(Policy::lazy);
    Graph graph(scheduler);
    Event start, end;
    graph.submit(graph.legacy(), [] {});
    graph.record(start, graph.legacy());
    graph.record(end, graph.legacy());
    graph.synchronize(end);
    graph.synchronize(start);
    CHECK(graph.milliseconds(start, end) == 0.0F);
}

TEST_CASE("many threads on shared streams keep each stream's order") {
    for (const Policy policy : {Policy::eager, Policy::lazy, Policy::threads, Policy::random}) {
        CAPTURE(static_cast<int>(policy));
        Scheduler scheduler(policy);
        Graph graph(scheduler);
        constexpr int threads = 4, rounds = 500;
        std::vector<Stream> streams(threads, non_blocking());
        for (Stream& stream : streams) graph.add(stream);
        std::vector<int> counts(threads, 0);  // each is accessed by operations of one stream, without a lock
        std::vector<std::thread> all;
        for (int t = 0; t < threads; ++t) {
            all.emplace_back([&, t] {
                Event event;
                for (int i = 0; i < rounds; ++i) {
                    const auto at = static_cast<std::size_t>((t + i) % threads);
                    graph.submit(streams[at], [&counts, at] { ++counts[at]; });
                    graph.record(event, streams[at]);
                    graph.wait(streams[(at + 1) % threads], event);
                    if (i % 50 == 0) graph.synchronize(streams[at]);
                    if (i % 70 == 0) scheduler.exclusively([] {});
                }
            });
        }
        for (std::thread& thread : all) thread.join();
        graph.synchronize_all();
        for (const int count : counts) CHECK(count == rounds);
    }
}

TEST_CASE("threads run what is ready, end with the scheduler, and leave what is pending") {
    std::atomic<int> ran = 0;
    std::promise<void> begun, go_on;
    std::thread releasing;
    {
        Scheduler scheduler(Policy::threads);
        Graph graph(scheduler);
        Stream busy = non_blocking(), free = non_blocking();
        graph.add(busy);
        graph.add(free);
        graph.submit(busy, [&] {
            begun.set_value();
            go_on.get_future().wait();
            ++ran;
        });
        graph.submit(busy, [&] { ran += 100; });
        for (int i = 0; i < 50; ++i) graph.submit(free, [&] { ++ran; });
        graph.synchronize(free);
        CHECK(ran == 50);
        begun.get_future().wait();
        releasing = std::thread([&] { go_on.set_value(); });
    }
    releasing.join();
    CHECK(ran % 50 == 1);  // the one that adds 100 may have run or not
}

TEST_CASE("after its threads have retired a scheduler runs what a thread waits for") {
    static Scheduler& scheduler = *new Scheduler(Policy::threads);
    Graph graph(scheduler);
    Stream stream = non_blocking();
    graph.add(stream);
    int ran = 0;
    graph.submit(stream, [&] { ++ran; });
    graph.synchronize(stream);
    scheduler.retire(std::chrono::milliseconds(0));
    std::thread::id where;
    graph.submit(stream, [&] {
        ++ran;
        where = std::this_thread::get_id();
    });
    Event mark;
    graph.record(mark, stream);
    CHECK(ran == 1);
    graph.synchronize(mark);
    CHECK(ran == 2);
    CHECK(where == std::this_thread::get_id());
}

TEST_CASE("who wants to be alone does not hold back what a running operation waits for") {
    Scheduler scheduler(Policy::threads);
    Graph graph(scheduler);
    Stream waits = non_blocking(), helps = non_blocking();
    graph.add(waits);
    graph.add(helps);
    std::promise<void> begun, helped;
    graph.submit(waits, [&] {
        begun.set_value();
        helped.get_future().wait();
    });
    begun.get_future().wait();
    std::promise<void> asking;
    bool alone = false;
    std::thread freeing([&] {
        asking.set_value();
        scheduler.exclusively([&] { alone = true; });
    });
    asking.get_future().wait();
    graph.submit(helps, [&] { helped.set_value(); });
    graph.synchronize_all();
    freeing.join();
    CHECK(alone);
}

TEST_CASE("a thread that waits is asked whether it still wants to, however often other work ends") {
    static std::atomic<std::thread::id> waiting;
    static std::atomic<bool> asked;
    waiting = std::this_thread::get_id();
    asked = false;
    static std::promise<void> wanted_no_more;
    Scheduler scheduler({.policy = Policy::threads}, [] {
        if (std::this_thread::get_id() == waiting && !asked.exchange(true)) wanted_no_more.set_value();
    });
    Graph graph(scheduler);
    Stream endless = non_blocking(), busy = non_blocking();
    graph.add(endless);
    graph.add(busy);
    std::atomic<bool> ended = false;
    graph.submit(endless, [&] {
        wanted_no_more.get_future().wait_for(std::chrono::seconds(20));
        ended = true;
    });
    std::thread other([&] {
        while (!ended) {
            graph.submit(busy, [] {});
            graph.synchronize(busy);
        }
    });
    graph.synchronize(endless);
    other.join();
    CHECK(asked);
}

TEST_CASE("what a removed stream leaves is waited for, in its place and not beyond it") {
    Scheduler scheduler(Policy::lazy);
    Graph graph(scheduler);
    Stream blocking, apart = non_blocking();
    graph.add(blocking);
    graph.add(apart);
    bool ran = false, apart_ran = false;
    graph.submit(blocking, [&] { ran = true; });
    graph.submit(apart, [&] { apart_ran = true; });
    graph.remove(blocking);
    graph.remove(apart);
    CHECK_FALSE(ran);
    graph.synchronize(graph.legacy());
    CHECK(ran);
    CHECK_FALSE(apart_ran);
    graph.synchronize_all();
    CHECK(apart_ran);
}

TEST_CASE("operations that nobody forces go with the scheduler, however many") {
    Scheduler scheduler(Policy::lazy);
    Graph graph(scheduler);
    Lanes lanes;
    auto owned = std::make_shared<int>(0);
    {
        const std::vector<Step> steps = chain(100000, [owned] { ++*owned; });
        graph.launch(graph.legacy(), steps, lanes);
    }
    CHECK(owned.use_count() == 100001);
}
