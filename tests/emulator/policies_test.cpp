// Scheduling policies: their names, what each of them does, and how processes end under them.
#include <atomic>
#include <chrono>
#include <future>
#include <set>

#include "child.hpp"
#include "streams/schedule.hpp"
#include "world.hpp"

using client::Library;
using client::run_child;
using client::World;
using emulated::streams::Policy;
using emulated::streams::schedule_from;

TEST_CASE("a policy is named by a word, a random one by its seed too") {
    CHECK(schedule_from("eager")->policy == Policy::eager);
    CHECK(schedule_from("lazy")->policy == Policy::lazy);
    CHECK(schedule_from("threads")->policy == Policy::threads);
    CHECK(schedule_from("random:18446744073709551615")->policy == Policy::random);
    CHECK(schedule_from("random:18446744073709551615")->seed == 18446744073709551615U);
    for (const char* wrong : {"", "Lazy", "lazy ", "random", "random:", "random:-1", "random:1x",
                              "random:0x10", "random:18446744073709551616", "greedy"}) {
        CAPTURE(wrong);
        CHECK_FALSE(schedule_from(wrong).has_value());
    }
}

TEST_CASE("a policy that nobody knows is an error that names the variable and what it may be") {
    Library library({{"BASCULE_EMULATED_SCHEDULE", "greedy"}});
    CHECK(library.initialised == CUDA_ERROR_INVALID_VALUE);
    CHECK(library.cuInit(0) == CUDA_ERROR_INVALID_VALUE);
    int count = 0;
    CHECK(library.cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED);
    for (const char* part :
         {"BASCULE_EMULATED_SCHEDULE", "'greedy'", "eager", "lazy", "threads", "random:<seed>"}) {
        CAPTURE(part);
        CHECK(library.report().find(part) != std::string::npos);
    }
}

TEST_CASE("an empty policy is the default one") {
    Library library({{"BASCULE_EMULATED_SCHEDULE", ""}});
    World world(library);
    float* x = world.pinned();
    world.increment(x, world.device.stream());
    CHECK(*x == 1.0F);  // as under `eager`
}

TEST_CASE("under `threads` an operation begins without a call that waits for it") {
    World world("threads");
    std::promise<void> begun;
    world.api.cuLaunchHostFunc(
        world.device.stream(), [](void* data) { static_cast<std::promise<void>*>(data)->set_value(); },
        &begun);
    CHECK(begun.get_future().wait_for(std::chrono::seconds(30)) == std::future_status::ready);
}

TEST_CASE("under `threads` a kernel that waits for another stream's kernel gets on") {
    World world("threads");
    float* flag = world.pinned();
    const CUstream p = world.device.stream();
    const CUstream q = world.device.stream();
    CHECK(world.device.launch("await", p, reinterpret_cast<CUdeviceptr>(flag)) == CUDA_SUCCESS);
    CHECK(world.api.cuStreamQuery(p) == CUDA_ERROR_NOT_READY);
    CHECK(world.device.launch("raise", q, reinterpret_cast<CUdeviceptr>(flag)) == CUDA_SUCCESS);
    CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
}

TEST_CASE("under `threads` as many streams work at once as there are") {
    World world("threads");
    constexpr unsigned streams = 8;
    auto* meeting = static_cast<unsigned*>(world.pinned_bytes(2 * sizeof(unsigned)));
    meeting[0] = 0;
    meeting[1] = streams;
    for (unsigned i = 0; i < streams; ++i) {
        CHECK(world.device.launch("meet", world.device.stream(), reinterpret_cast<CUdeviceptr>(meeting)) ==
              CUDA_SUCCESS);
    }
    CHECK(world.api.cuCtxSynchronize() == CUDA_SUCCESS);
    CHECK(meeting[0] == streams);
}

TEST_CASE("a missing wait shows under `lazy`, and under some seeds of `random`") {
    const auto forgotten_wait = [](World& world) {
        float* x = world.pinned();
        const CUstream p = world.device.stream();
        const CUstream q = world.device.stream();
        world.increment(x, p);
        world.twice(x, q);  // should wait for p
        world.api.cuStreamSynchronize(q);
        world.api.cuStreamSynchronize(p);
        return *x;
    };
    World eager("eager");
    CHECK(forgotten_wait(eager) == 2.0F);  // hides the missing wait
    World lazy("lazy");
    CHECK(forgotten_wait(lazy) == 1.0F);
    std::set<float> seen;
    World random("random:4");
    for (int i = 0; i < 50; ++i) seen.insert(forgotten_wait(random));
    CHECK(seen == std::set<float>{1.0F, 2.0F});
}

TEST_CASE("a process may end while operations are pending or running") {
    for (const std::string& policy : client::policies) {
        CAPTURE(policy);
        const auto child = run_child("exit with work", policy);
        CAPTURE(child.output);
        CHECK(child.exit_code == 0);
    }
}

TEST_CASE("objects that are destroyed after the device's threads have ended still can use it") {
    for (const std::string& policy : client::policies) {
        CAPTURE(policy);
        const auto child = run_child("use at exit", policy);
        CHECK(child.exit_code == 0);
        CHECK(child.output == "at the end: 0, 3\n");
    }
}

TEST_CASE("a host function may end the process") {
    for (const std::string& policy : client::policies) {
        CAPTURE(policy);
        CHECK(run_child("exit in a host function", policy).exit_code == 7);
    }
}

TEST_CASE("a forked process has no device, and its parent keeps its own") {
    for (const std::string& policy : client::policies) {
        CAPTURE(policy);
        const auto child = run_child("fork", policy);
        CHECK(child.exit_code == 0);
        CHECK(child.output == "child 0, value 1\n");
    }
}

TEST_CASE("closing the library does not take its threads' code away") {
    for (const std::string& policy : client::policies) {
        CAPTURE(policy);
        CHECK(run_child("close the library", policy).exit_code == 0);
    }
}
