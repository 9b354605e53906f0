// Rules 8 to 10 of runtime/streams/ORDER.md: every driver call that a launch with two producers makes fails in turn.
#include <atomic>
#include <barrier>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/lifetime/lifetime.hpp>

#include "failing_driver.hpp"
#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

namespace {

/// The call of a function that fails, counted from 0.
struct Failing {
    std::string_view function;
    int number = 0;
};

std::atomic<int> released = 0;

struct Fixture : Addition {
    void launch_once() {
        ArgumentPack args(kernel.signature(device));
        set(args, p.ref().handle(), q.ref().handle(), 0);
        const Owner owner{&released, &count_releases<std::atomic<int>>};
        kernel.launch(launch_stream, {.grid = {1}, .block = {64}}, args, owner);
    }

    /// The error of a launch in which one call failed, and how often the host waited for its stream.
    struct Outcome {
        int host_waits = 0;
        std::string message;
    };

    /// Requires an existing FailingDriver.
    Outcome launch_failing(const Failing& which) {
        FailingDriver::fail(which.number, which.function);
        Outcome outcome;
        try {
            launch_once();
        } catch (const CudaError& error) {
            outcome.message = error.what();
        }
        outcome.host_waits = FailingDriver::calls_of("cuStreamSynchronize");
        FailingDriver::fail(-1);
        return outcome;
    }

    /// Makes events and code available, and releases all owners.
    void warm() {
        launch_once();
        launch_stream.ref().synchronize();
    }
};

const std::string both_waits = "R(e1,p) W(e1,C) R(e1,q) W(e1,C)";
const std::string launched = both_waits + " L(C)";

/// Each failing call, and the operations that reach the driver if it fails.
const std::vector<std::pair<Failing, std::string>> before_the_launch{
    {{"cuEventRecord", 0}, ""},
    {{"cuStreamWaitEvent", 0}, "R(e1,p)"},
    {{"cuEventRecord", 1}, "R(e1,p) W(e1,C)"},
    {{"cuStreamWaitEvent", 1}, "R(e1,p) W(e1,C) R(e1,q)"},
};
const std::vector<std::pair<Failing, std::string>> behind_the_launch{
    {{"cuEventRecord", 2}, launched},
    {{"cuStreamWaitEvent", 2}, launched + " R(e1,C)"},
    {{"cuStreamWaitEvent", 3}, launched + " R(e1,C) W(e1,p)"},
};

}  // namespace

TEST_CASE("rule 8: a record or a wait that fails before the launch stops it") {
    Fixture f;
    for (const auto& [failing, order] : before_the_launch) {
        const Failing& failure = failing;
        CAPTURE(failure.function);
        CAPTURE(failure.number);
        f.warm();
        const FailingDriver driver;
        const OperationTrace trace;
        const Fixture::Outcome outcome = f.launch_failing(failure);
        CHECK(trace.spelled(f.names) == order);
        CHECK(outcome.host_waits == 0);
        CHECK(outcome.message.find("CUDA_ERROR_ILLEGAL_STATE") != std::string::npos);
        // The error names the argument whose stream the failing call is for.
        CHECK(outcome.message.find(failure.number == 0 ? "argument 1" : "argument 2") != std::string::npos);
    }
}

TEST_CASE("rule 9: no fence follows a launch that fails") {
    Fixture f;
    f.warm();
    const FailingDriver driver;
    const OperationTrace trace;
    const Fixture::Outcome outcome = f.launch_failing({"cuLaunchKernelEx", 0});
    CHECK(trace.spelled(f.names) == both_waits);
    CHECK(outcome.host_waits == 0);
    CHECK(outcome.message.find("launching kernel 'add'") != std::string::npos);
}

TEST_CASE("rule 10: when any part of the fence fails the host has waited for the launch") {
    Fixture f;
    for (const auto& [failing, order] : behind_the_launch) {
        const Failing& failure = failing;
        CAPTURE(failure.function);
        CAPTURE(failure.number);
        f.warm();
        const FailingDriver driver;
        const OperationTrace trace;
        const Fixture::Outcome outcome = f.launch_failing(failure);
        CHECK(trace.spelled(f.names) == order);
        CHECK(outcome.host_waits == 1);
        CHECK_FALSE(outcome.message.empty());
        CHECK(f.launch_stream.ref().query());
    }
}

TEST_CASE("rules 8 to 10: events are used again and owners are kept until the stream is done") {
    Fixture f;
    for (const Failing& failure : {Failing{"cuEventRecord", 1}, Failing{"cuStreamWaitEvent", 1},
                                   Failing{"cuLaunchKernelEx", 0}, Failing{"cuStreamWaitEvent", 3}}) {
        CAPTURE(failure.function);
        f.warm();
        released = 0;
        const std::uint64_t made = calls_of("cuEventCreate", [&] {
            const FailingDriver driver;
            f.launch_failing(failure);
            f.launch_once();
        });
        CHECK(made == 0);
        f.launch_stream.ref().synchronize();
        CHECK(released == 2);  // owners of the failed launch and of the next one
    }
}

// Each thread's launches concern only its own streams, arrays and failures.
TEST_CASE("rules 8 to 10: eight threads whose calls fail at the same time") {
    constexpr std::size_t thread_count = 8;
    std::vector<std::unique_ptr<Fixture>> fixtures;
    for (std::size_t i = 0; i < thread_count; ++i) {
        fixtures.push_back(std::make_unique<Fixture>());
        fixtures.back()->warm();
    }
    std::vector<std::pair<Failing, std::string>> failures = before_the_launch;
    failures.emplace_back(Failing{"cuLaunchKernelEx", 0}, both_waits);
    failures.insert(failures.end(), behind_the_launch.begin(), behind_the_launch.end());
    released = 0;
    for (std::size_t round = 0; round < 4 * failures.size(); ++round) {
        const FailingDriver driver;
        const OperationTrace trace;
        std::barrier together(static_cast<std::ptrdiff_t>(thread_count));
        std::vector<Fixture::Outcome> outcomes(thread_count);
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < thread_count; ++i) {
            threads.emplace_back([&, i] {
                together.arrive_and_wait();
                outcomes[i] = fixtures[i]->launch_failing(failures[(round + i) % failures.size()].first);
            });
        }
        for (std::thread& thread : threads) thread.join();
        for (std::size_t i = 0; i < thread_count; ++i) {
            const std::size_t which = (round + i) % failures.size();
            CAPTURE(failures[which].first.function);
            CAPTURE(failures[which].first.number);
            CHECK(trace.spelled_on(fixtures[i]->names) == failures[which].second);
            CHECK(outcomes[i].host_waits == (which > before_the_launch.size() ? 1 : 0));
            CHECK_FALSE(outcomes[i].message.empty());
        }
    }
    for (const auto& fixture : fixtures) fixture->launch_stream.ref().synchronize();
    CHECK(released == static_cast<int>(thread_count * 4 * failures.size()));
}
