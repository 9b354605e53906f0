// The search for races: which programs must be reported and which must not, under every policy. Two operations race if
// they touch the same bytes, at least one of them writes, and no stream, event or synchronisation orders them.
#include <nlohmann/json.hpp>
#include <thread>

#include "world.hpp"

using client::Library;
using client::policies;
using client::World;

namespace {

const char* const program = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry count(.param .u64 p)
{
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [p];
    red.global.add.u32 [%rd1], 1;
    ret;
}
.visible .entry release(.param .u64 p)
{
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [p];
    ld.relaxed.gpu.global.u32 %r1, [%rd1];
    st.release.gpu.global.u32 [%rd1], %r1;
    ret;
}
.visible .entry three_of_four(.param .u64 p)
{
    .reg .b64 %rd<2>;
    .reg .f32 %f<5>;
    ld.param.u64 %rd1, [p];
    .pragma "used_bytes_mask 4095";
    ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];
    ret;
}
.visible .entry second_bytes(.param .u64 p)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<2>;
    .reg .b16 %h<2>;
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 2;
    add.s64 %rd3, %rd1, %rd2;
    mov.u16 %h1, 7;
    st.global.u8 [%rd3+1], %h1;
    ret;
}
)";

/// A World whose device searches for races, with the arrays of the tests.
struct Searched : World {
    Searched(Library& library, std::string the_policy) : World(library), policy(std::move(the_policy)) {
        take();
        REQUIRE(api.cuLibraryLoadData(&code, program, nullptr, nullptr, 0, nullptr, nullptr, 0) ==
                CUDA_SUCCESS);
        x = device.floats(64, 1.0F);
        p = device.stream();
        c = device.stream();
    }
    ~Searched() {
        api.cuCtxSynchronize();
        CHECK(take() == "");  // each test checks its reports itself
        api.cuLibraryUnload(code);
    }

    CUresult run(const char* name, CUstream stream, CUdeviceptr address, unsigned threads = 1) {
        CUkernel kernel = nullptr;
        CUfunction function = nullptr;
        REQUIRE(api.cuLibraryGetKernel(&kernel, code, name) == CUDA_SUCCESS);
        REQUIRE(api.cuKernelGetFunction(&function, kernel) == CUDA_SUCCESS);
        void* parameters[] = {&address};
        return api.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, stream, parameters, nullptr);
    }
    void add(CUstream stream) { REQUIRE(device.launch("increment", stream, x) == CUDA_SUCCESS); }
    void order(CUstream earlier, CUstream later) {
        const CUevent event = device.event();
        REQUIRE(api.cuEventRecord(event, earlier) == CUDA_SUCCESS);
        REQUIRE(api.cuStreamWaitEvent(later, event, 0) == CUDA_SUCCESS);
    }
    std::string take() {
        using Take = decltype(&bascule_emulated_take_races);
        const auto function = reinterpret_cast<Take>(api.symbol("bascule_emulated_take_races"));
        std::string text(function(nullptr, 0), '\0');
        function(text.data(), text.size() + 1);
        std::string reports;
        for (const auto& report : nlohmann::json::parse(text)) reports += report.get<std::string>() + "\n";
        return reports;
    }
    BasculeEmulatedRaceStatistics statistics() {
        using Get = decltype(&bascule_emulated_race_statistics);
        BasculeEmulatedRaceStatistics numbers{};
        reinterpret_cast<Get>(api.symbol("bascule_emulated_race_statistics"))(&numbers);
        return numbers;
    }
    /// Waits for everything issued so far, and returns the reports of its races.
    std::string found() {
        REQUIRE(api.cuCtxSynchronize() == CUDA_SUCCESS);
        return take();
    }
    bool races() { return !found().empty(); }

    const std::string policy;
    CUlibrary code = nullptr;
    CUdeviceptr x = 0;
    CUstream p = nullptr, c = nullptr;
};

Library& searching(const std::string& policy) {
    static auto& made = *new std::map<std::string, std::unique_ptr<Library>>;
    auto& library = made[policy];
    if (library == nullptr) {
        library =
            std::make_unique<Library>(Library::Environment{{"BASCULE_EMULATED_SCHEDULE", policy.c_str()},
                                                           {"BASCULE_EMULATED_DEVICES", "2"},
                                                           {"BASCULE_EMULATED_CHECKS", "memory,races"}});
    }
    return *library;
}

template <class Claim>
void searched_under_each_policy(const Claim& claim) {
    for (const std::string& policy : policies) {
        CAPTURE(policy);
        Searched world(searching(policy), policy);
        claim(world);
    }
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("bytes that a load reads and does not use race with nobody") {
    searched_under_each_policy([](Searched& world) {
        CHECK(world.run("three_of_four", world.p, world.x) == CUDA_SUCCESS);
        CHECK(world.run("count", world.c, world.x + 12) == CUDA_SUCCESS);
        CHECK_FALSE(world.races());
        CHECK(world.run("three_of_four", world.p, world.x) == CUDA_SUCCESS);
        CHECK(world.run("count", world.c, world.x + 8) == CUDA_SUCCESS);
        CHECK(says(world.found(), "both touch 4 bytes at byte 8"));
    });
}

TEST_CASE("two kernels on two streams that nothing orders race, and the report says all of it") {
    searched_under_each_policy([](Searched& world) {
        world.api.name_allocation(world.x, "made at train.py:3");
        world.add(world.p);
        world.add(world.c);
        const std::string report = world.found();
        INFO(report);
        CHECK(report.starts_with("stream race"));
        CHECK(says(report, "first launch of 'increment' on stream"));
        CHECK(says(report, "then launch of 'increment' on stream"));
        CHECK(says(report, "both touch 4 bytes at byte 0 of the 256-byte allocation made at train.py:3"));
        CHECK(says(report, "must wait, before the launch of 'increment', for what stream"));
        CHECK(says(report, "It has waited for nothing of that stream yet."));
    });
}

TEST_CASE("an event between them orders two streams") {
    searched_under_each_policy([](Searched& world) {
        world.add(world.p);
        world.order(world.p, world.c);
        world.add(world.c);
        world.order(world.c, world.p);
        world.add(world.p);
        CHECK_FALSE(world.races());
    });
}

TEST_CASE("an event recorded too early orders what came before it alone") {
    searched_under_each_policy([](Searched& world) {
        const CUevent event = world.device.event();
        world.add(world.p);
        world.api.cuEventRecord(event, world.p);
        world.add(world.p);
        world.api.cuStreamWaitEvent(world.c, event, 0);
        world.add(world.c);
        const std::string report = world.found();
        CHECK(says(report, "It has waited for that stream up to its operation 1; this one is number 2."));
    });
}

TEST_CASE("a wait takes the newest record, and a later one does not change it") {
    searched_under_each_policy([](Searched& world) {
        const CUevent event = world.device.event();
        world.api.cuEventRecord(event, world.p);
        world.add(world.p);
        world.api.cuEventRecord(event, world.p);
        world.api.cuStreamWaitEvent(world.c, event, 0);
        world.api.cuEventRecord(event, world.device.stream());
        world.add(world.c);
        CHECK_FALSE(world.races());
    });
}

TEST_CASE("order goes through a third stream") {
    searched_under_each_policy([](Searched& world) {
        const CUstream between = world.device.stream();
        world.add(world.p);
        world.order(world.p, between);
        world.order(between, world.c);
        world.add(world.c);
        CHECK_FALSE(world.races());
    });
}

TEST_CASE("the legacy default stream is ordered with blocking streams alone") {
    searched_under_each_policy([](Searched& world) {
        const CUstream blocking = world.device.stream(CU_STREAM_DEFAULT);
        world.add(blocking);
        world.add(nullptr);
        world.add(blocking);
        world.add(CU_STREAM_PER_THREAD);  // also blocking; the earlier stream is not ordered with it
        CHECK(world.races());
        world.add(CU_STREAM_PER_THREAD);
        world.add(CU_STREAM_LEGACY);
        CHECK_FALSE(world.races());
        world.add(CU_STREAM_LEGACY);
        world.add(world.p);
        CHECK(world.races());
    });
}

TEST_CASE("what the host has waited for comes before what it issues later") {
    searched_under_each_policy([](Searched& world) {
        world.add(world.p);
        world.api.cuStreamSynchronize(world.p);
        world.add(world.c);
        while (world.api.cuStreamQuery(world.c) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
        world.add(world.p);
        const CUevent event = world.device.event();
        world.api.cuEventRecord(event, world.p);
        world.api.cuEventSynchronize(event);
        world.add(world.c);
        CHECK_FALSE(world.races());
    });
}

TEST_CASE("a synchronisation orders nothing that was issued before it") {
    searched_under_each_policy([](Searched& world) {
        world.add(world.p);
        world.add(world.c);
        world.api.cuStreamSynchronize(world.p);
        CHECK(world.races());
    });
}

TEST_CASE("freeing other memory orders nothing, though it waits") {
    searched_under_each_policy([](Searched& world) {
        CUdeviceptr other = 0;
        REQUIRE(world.api.cuMemAlloc(&other, 4) == CUDA_SUCCESS);
        world.add(world.p);
        world.api.cuMemFree(other);
        world.add(world.c);
        CHECK(world.races());
    });
}

TEST_CASE("reading together is not a race, and different bytes are none") {
    searched_under_each_policy([](Searched& world) {
        const CUdeviceptr to = world.device.allocate(512);
        world.api.cuMemcpyDtoDAsync(to, world.x, 64, world.p);
        world.api.cuMemcpyDtoDAsync(to + 64, world.x, 64, world.c);
        CHECK_FALSE(world.races());
        world.run("second_bytes", world.p, to, 32);
        for (unsigned i = 0; i < 32; ++i) world.api.cuMemsetD8Async(to + 2 * i, 1, 1, world.c);
        CHECK_FALSE(world.races());
    });
}

TEST_CASE("one byte in common is a race, and the report has its place") {
    searched_under_each_policy([](Searched& world) {
        const CUdeviceptr to = world.device.allocate(5000);
        world.api.cuMemsetD8Async(to, 1, 4500, world.p);
        world.api.cuMemsetD8Async(to + 4499, 2, 501, world.c);
        CHECK(says(world.found(), "both touch 1 byte at byte 4499 of the 5000-byte allocation"));
        world.run("second_bytes", world.p, to, 32);
        world.api.cuMemsetD8Async(to, 1, 64, world.c);
        CHECK(says(world.found(), "both touch 32 of 63 bytes at byte 1 of the 5000-byte allocation"));
    });
}

TEST_CASE("copies and fills race like kernels, on pinned memory too") {
    searched_under_each_policy([](Searched& world) {
        float* const pinned = world.pinned();
        world.api.cuMemcpyDtoHAsync(pinned, world.x, 4, world.p);
        world.api.cuMemcpyHtoDAsync(world.x + 4, pinned, 4, world.c);
        const std::string report = world.found();
        CHECK(says(report, "first copy of 4 bytes (cuMemcpyDtoHAsync)"));
        CHECK(says(report, "the first writes, the other reads"));
        world.api.cuMemFreeHost(pinned);
    });
}

TEST_CASE("atomics do not race with each other, and do with plain accesses") {
    searched_under_each_policy([](Searched& world) {
        world.run("count", world.p, world.x, 32);
        world.run("count", world.c, world.x, 32);
        world.run("release", world.device.stream(), world.x);
        CHECK_FALSE(world.races());
        world.run("count", world.p, world.x);
        world.api.cuMemsetD32Async(world.x, 0, 1, world.c);
        CHECK(world.races());
        world.run("release", world.p, world.x);
        world.add(world.c);
        CHECK(world.races());
    });
}

TEST_CASE("memory that comes and goes in stream order is given and taken in that order") {
    searched_under_each_policy([](Searched& world) {
        for (const bool waits : {true, false}) {
            CUdeviceptr memory = 0;
            REQUIRE(world.api.cuMemAllocAsync(&memory, 64, world.p) == CUDA_SUCCESS);
            world.api.cuMemsetD8Async(memory, 1, 64, world.p);
            world.order(world.p, world.c);
            world.api.cuMemcpyDtoDAsync(world.x, memory, 64, world.c);
            if (waits) world.order(world.c, world.p);
            if (world.policy != "eager" && !waits) continue;  // the free may come first, which is a fault
            world.api.cuMemFreeAsync(memory, world.p);
            CHECK(world.races() == !waits);
        }
    });
}

TEST_CASE("a new allocation has no past") {
    searched_under_each_policy([](Searched& world) {
        for (int i = 0; i < 300; ++i) {  // all of it stays in the quarantine: every address is new
            CUdeviceptr memory = 0;
            REQUIRE(world.api.cuMemAlloc(&memory, 1 << 20) == CUDA_SUCCESS);
            world.api.cuMemsetD8Async(memory, 1, 8, i % 2 == 0 ? world.p : world.c);
            world.api.cuMemFree(memory);
        }
        CHECK_FALSE(world.races());
    });
}

TEST_CASE("what a destroyed stream has left is ordered as if it were there") {
    searched_under_each_policy([](Searched& world) {
        CUstream gone = nullptr;
        REQUIRE(world.api.cuStreamCreate(&gone, CU_STREAM_DEFAULT) == CUDA_SUCCESS);
        world.add(gone);
        world.order(gone, world.c);
        world.api.cuStreamDestroy(gone);
        world.add(nullptr);
        CHECK_FALSE(world.races());
        REQUIRE(world.api.cuStreamCreate(&gone, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
        world.add(gone);
        world.api.cuStreamDestroy(gone);
        world.api.cuCtxSynchronize();
        world.add(world.c);
        CHECK_FALSE(world.races());
    });
}

TEST_CASE("threads with their own default streams race unless something orders them") {
    searched_under_each_policy([](Searched& world) {
        const CUcontext context = world.context();
        const auto add = [&] {
            world.api.cuCtxPushCurrent(context);
            world.add(CU_STREAM_PER_THREAD);
            world.api.cuCtxPopCurrent(nullptr);
        };
        std::thread(add).join();
        std::thread(add).join();
        CHECK(world.races());
    });
}

TEST_CASE("the operations of a graph are ordered as it was captured, and with the stream it is launched on") {
    searched_under_each_policy([](Searched& world) {
        const CUstream side = world.device.stream();
        CUgraph graph = nullptr;
        CUgraphExec whole = nullptr;
        REQUIRE(world.api.cuStreamBeginCapture(world.p, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
        world.add(world.p);
        world.order(world.p, side);
        world.add(side);
        world.order(side, world.p);
        REQUIRE(world.api.cuStreamEndCapture(world.p, &graph) == CUDA_SUCCESS);
        REQUIRE(world.api.cuGraphInstantiateWithFlags(&whole, graph, 0) == CUDA_SUCCESS);
        const CUstream q = world.device.stream();
        world.add(q);
        world.order(q, world.p);
        world.api.cuGraphLaunch(whole, world.p);
        world.order(world.p, world.c);
        world.add(world.c);
        world.order(world.c, q);
        world.api.cuGraphLaunch(whole, q);  // after its earlier launch, whatever the stream
        CHECK_FALSE(world.races());
        world.api.cuGraphLaunch(whole, world.p);
        world.add(world.c);
        const std::string report = world.found();
        INFO(report);
        CHECK(says(report, "first launch of 'increment' in a graph on stream"));
        world.api.cuGraphExecDestroy(whole);
        world.api.cuGraphDestroy(graph);
    });
}

TEST_CASE("branches of a graph that nothing orders race") {
    searched_under_each_policy([](Searched& world) {
        const CUstream side = world.device.stream();
        CUgraph graph = nullptr;
        CUgraphExec whole = nullptr;
        REQUIRE(world.api.cuStreamBeginCapture(world.p, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
        world.order(world.p, side);
        world.add(world.p);
        world.add(side);
        world.order(side, world.p);
        REQUIRE(world.api.cuStreamEndCapture(world.p, &graph) == CUDA_SUCCESS);
        REQUIRE(world.api.cuGraphInstantiateWithFlags(&whole, graph, 0) == CUDA_SUCCESS);
        CHECK_FALSE(world.races());
        world.api.cuGraphLaunch(whole, world.p);
        CHECK(world.races());
        world.api.cuGraphExecDestroy(whole);
        world.api.cuGraphDestroy(graph);
    });
}

TEST_CASE("the numbers grow with what is watched") {
    searched_under_each_policy([](Searched& world) {
        const auto before = world.statistics();
        world.add(world.p);
        world.order(world.p, world.c);
        world.add(world.c);
        CHECK_FALSE(world.races());
        const auto after = world.statistics();
        CHECK(after.nodes == before.nodes + 2);
        CHECK(after.edges > before.edges);
        CHECK(after.bytes == before.bytes + 8);
        CHECK(after.races == before.races);
    });
}

TEST_CASE("a dropped record or wait is found missing") {
    searched_under_each_policy([](Searched& world) {
        const auto drop =
            reinterpret_cast<decltype(&bascule_emulated_drop)>(world.api.symbol("bascule_emulated_drop"));
        const auto scenario = [&] {
            world.add(world.p);
            world.order(world.p, world.c);
            world.add(world.c);
            return world.races();
        };
        drop(~std::uint64_t{0});
        CHECK_FALSE(scenario());
        CHECK(drop(0) == 2);
        CHECK(scenario());
        drop(1);
        CHECK(scenario());
        drop(~std::uint64_t{0});
    });
}

TEST_CASE("an environment that asks for an unknown check is refused, with the ones there are") {
    const Library library({{"BASCULE_EMULATED_CHECKS", "memory,rases"}});
    CHECK(library.initialised == CUDA_ERROR_INVALID_VALUE);
    CHECK(says(library.report(),
               "BASCULE_EMULATED_CHECKS is 'memory,rases'; it must be a list of: memory,races,leaks,init,"));
}
