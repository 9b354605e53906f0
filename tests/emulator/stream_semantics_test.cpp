// Streams as specified by the driver API's documentation, under every policy. Each test names its source.
#include <array>
#include <set>
#include <thread>

#include "world.hpp"

using client::Busy;
using client::under_each_policy;
using client::World;

namespace {

void add_ten(void* value) { *static_cast<float*>(value) += 10.0F; }

/// The results of driver calls in a host function.
struct Inside {
    client::Library* api = nullptr;
    CUstream stream = nullptr;
    std::array<CUresult, 4> answers{};
};

void call_the_driver(void* data) {
    auto& inside = *static_cast<Inside*>(data);
    CUdeviceptr address = 0;
    inside.answers = {inside.api->cuMemAlloc(&address, 4), inside.api->cuStreamSynchronize(inside.stream),
                      inside.api->cuCtxSynchronize(), inside.api->cuStreamQuery(inside.stream)};
}

void remember_status(CUstream, CUresult status, void* data) { *static_cast<CUresult*>(data) = status; }

}  // namespace

// "Stream synchronization behavior": the legacy default stream waits on all blocking streams, and they on it.
TEST_CASE("blocking streams are ordered around the legacy default stream, non-blocking ones are not") {
    under_each_policy([](World& world) {
        float* x = world.pinned();
        const CUstream p = world.device.stream(CU_STREAM_DEFAULT);
        const CUstream q = world.device.stream(CU_STREAM_DEFAULT);
        world.increment(x, p);
        world.twice(x, nullptr);
        world.increment(x, q);
        world.twice(x, CU_STREAM_LEGACY);
        CHECK(world.api.cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
        CHECK(*x == 6.0F);  // ((0 + 1) * 2 + 1) * 2

        const CUstream free = world.device.stream(CU_STREAM_NON_BLOCKING);
        Busy busy(world, free);
        float* y = world.pinned();
        world.increment(y, nullptr);
        CHECK(world.api.cuStreamSynchronize(nullptr) == CUDA_SUCCESS);  // does not wait for `free`
        CHECK(*y == 1.0F);
    });
}

// cuStreamQuery: CUDA_SUCCESS when all operations have completed, CUDA_ERROR_NOT_READY if not.
TEST_CASE("a query says not ready while the stream works, and ready after") {
    under_each_policy([](World& world) {
        const CUstream p = world.device.stream();
        CHECK(world.api.cuStreamQuery(p) == CUDA_SUCCESS);
        Busy busy(world, p);
        CHECK(world.api.cuStreamQuery(p) == CUDA_ERROR_NOT_READY);
        busy.release();
        CHECK(world.api.cuStreamQuery(p) == CUDA_SUCCESS);
    });
}

// cuStreamQuery and cuEventQuery: CUDA_ERROR_NOT_READY if something is incomplete. Work continues between such calls,
// so a loop of them ends.
TEST_CASE("polling a stream or an event ends, and then everything before it has run") {
    under_each_policy([](World& world) {
        float* x = world.pinned();
        const CUstream p = world.device.stream();
        const CUstream q = world.device.stream();
        const CUevent event = world.device.event();
        for (int i = 0; i < 20; ++i) world.increment(x, p);
        world.api.cuEventRecord(event, p);
        world.api.cuStreamWaitEvent(q, event, 0);
        world.twice(x, q);
        while (world.api.cuEventQuery(event) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
        while (world.api.cuStreamQuery(q) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
        CHECK(*x == 40.0F);
    });
}

// cuStreamDestroy: returns immediately while the device still works; the work is completed.
TEST_CASE("a stream with pending work is destroyed at once, and its work completes") {
    under_each_policy([](World& world) {
        float* x = world.pinned();
        CUstream p = nullptr;
        REQUIRE(world.api.cuStreamCreate(&p, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
        Busy busy(world, p);
        std::thread issuer([&, context = world.context()] {
            world.api.cuCtxPushCurrent(context);
            CHECK(world.increment(x, p) == CUDA_SUCCESS);
            CHECK(world.api.cuStreamDestroy(p) == CUDA_SUCCESS);
            CHECK(world.api.cuStreamQuery(p) == CUDA_ERROR_INVALID_HANDLE);
            world.api.cuCtxPopCurrent(nullptr);
        });
        busy.release();
        issuer.join();  // not before: under `eager` a launch on a busy stream waits for it
        CHECK(world.api.cuCtxSynchronize() == CUDA_SUCCESS);
        CHECK(*x == 1.0F);
    });
}

// cuStreamDestroy and "Stream synchronization behavior" together.
TEST_CASE("the legacy default stream waits for what a destroyed blocking stream has left") {
    under_each_policy([](World& world) {
        float* x = world.pinned();
        CUstream p = nullptr;
        world.api.cuStreamCreate(&p, CU_STREAM_DEFAULT);
        world.increment(x, p);
        world.api.cuStreamDestroy(p);
        world.twice(x, nullptr);
        CHECK(world.api.cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
        CHECK(*x == 2.0F);
    });
}

// cuCtxSynchronize: blocks until all preceding tasks of the current context are done.
TEST_CASE("the context's synchronisation waits for streams of every kind") {
    under_each_policy([](World& world) {
        std::vector<float*> values;
        const std::array streams = {static_cast<CUstream>(nullptr), CU_STREAM_PER_THREAD,
                                    world.device.stream(CU_STREAM_DEFAULT), world.device.stream()};
        for (const CUstream stream : streams) {
            values.push_back(world.pinned());
            world.increment(values.back(), stream);
        }
        CHECK(world.api.cuCtxSynchronize() == CUDA_SUCCESS);
        for (const float* value : values) CHECK(*value == 1.0F);
    });
}

// "Stream synchronization behavior": the per-thread default stream is local to the thread and the context,
// and synchronizes with the legacy stream as any blocking stream does.
TEST_CASE("each thread has a default stream of its own, ordered with the legacy one") {
    under_each_policy([](World& world) {
        Busy busy(world, CU_STREAM_PER_THREAD);  // occupies the default stream of another thread
        float* x = world.pinned();
        world.increment(x, CU_STREAM_PER_THREAD);  // this thread's default stream is idle
        CHECK(world.api.cuStreamSynchronize(CU_STREAM_PER_THREAD) == CUDA_SUCCESS);
        CHECK(*x == 1.0F);
        busy.release();

        float* y = world.pinned();
        world.increment(y, CU_STREAM_PER_THREAD);
        world.twice(y, CU_STREAM_LEGACY);
        world.increment(y, CU_STREAM_PER_THREAD);
        CHECK(world.api.cuStreamSynchronize(CU_STREAM_PER_THREAD) == CUDA_SUCCESS);
        CHECK(*y == 3.0F);
    });
}

TEST_CASE("what a thread leaves on its own stream when it ends is still done") {
    under_each_policy([](World& world) {
        float* x = world.pinned();
        for (int i = 0; i < 3; ++i) {
            std::thread([&, context = world.context()] {
                world.api.cuCtxPushCurrent(context);
                world.increment(x, CU_STREAM_PER_THREAD);
                world.api.cuStreamSynchronize(CU_STREAM_PER_THREAD);
                world.twice(x, CU_STREAM_PER_THREAD);
                world.api.cuCtxPopCurrent(nullptr);
            }).join();
            world.api.cuCtxSynchronize();
        }
        CHECK(*x == 14.0F);  // x -> 2 (x + 1), three times
    });
}

// cuLaunchHostFunc: called after currently enqueued work, blocks work added after it.
TEST_CASE("a host function has its place in the stream") {
    under_each_policy([](World& world) {
        float* x = world.pinned();
        const CUstream p = world.device.stream();
        world.increment(x, p);
        CHECK(world.api.cuLaunchHostFunc(p, add_ten, x) == CUDA_SUCCESS);
        world.twice(x, p);
        CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
        CHECK(*x == 22.0F);
        CHECK(world.api.cuLaunchHostFunc(p, nullptr, x) == CUDA_ERROR_INVALID_VALUE);
    });
}

// cuLaunchHostFunc: "The host function must not make any CUDA API calls ... CUDA_ERROR_NOT_PERMITTED".
TEST_CASE("a host function may not call the driver") {
    under_each_policy([](World& world) {
        const CUstream p = world.device.stream();
        Inside inside{&world.api, p, {}};
        world.api.cuLaunchHostFunc(p, call_the_driver, &inside);
        CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
        for (const CUresult answer : inside.answers) CHECK(answer == CUDA_ERROR_NOT_PERMITTED);
        CHECK(world.api.cuStreamQuery(p) == CUDA_SUCCESS);
    });
}

// cuStreamAddCallback: "may be passed CUDA_SUCCESS or an error code"; cuLaunchHostFunc: "in contrast ... the
// function will not be called in the event of an error in the CUDA context".
TEST_CASE("after a fault callbacks are told of it, and host functions are not called") {
    for (const std::string& policy : client::policies) {
        CAPTURE(policy);
        client::Library library({{"BASCULE_EMULATED_SCHEDULE", policy.c_str()}});
        World world(library);
        float* x = world.pinned();
        const CUstream p = world.device.stream();
        CUresult before = CUDA_ERROR_UNKNOWN;
        CUresult after = CUDA_ERROR_UNKNOWN;
        CHECK(library.cuStreamAddCallback(p, remember_status, &before, 0) == CUDA_SUCCESS);
        CHECK(library.cuStreamAddCallback(p, remember_status, &before, 1) == CUDA_ERROR_INVALID_VALUE);
        CHECK(library.cuStreamSynchronize(p) == CUDA_SUCCESS);
        CHECK(before == CUDA_SUCCESS);

        // Everything is issued before the fault happens, if the policy allows it.
        CHECK(world.device.launch("trap", p, reinterpret_cast<CUdeviceptr>(x)) == CUDA_SUCCESS);
        const CUresult host = library.cuLaunchHostFunc(p, add_ten, x);
        const CUresult callback = library.cuStreamAddCallback(p, remember_status, &after, 0);
        CHECK(library.cuStreamSynchronize(p) == CUDA_ERROR_ILLEGAL_INSTRUCTION);
        CHECK(*x == 0.0F);
        if (policy == "lazy") {
            CHECK(host == CUDA_SUCCESS);
            CHECK(callback == CUDA_SUCCESS);
        }
        if (callback == CUDA_SUCCESS) {
            CHECK(after == CUDA_ERROR_ILLEGAL_INSTRUCTION);
        } else {
            CHECK(callback == CUDA_ERROR_ILLEGAL_INSTRUCTION);
        }
    }
}

// cuStreamCreateWithPriority: "lower numbers represent higher priorities"; values outside the range are clamped.
TEST_CASE("priorities are clamped to the range, and told") {
    World world("lazy");
    int least = -1;
    int greatest = 1;
    CHECK(world.api.cuCtxGetStreamPriorityRange(&least, &greatest) == CUDA_SUCCESS);
    CHECK(least == 0);
    CHECK(greatest < least);
    for (const auto& [asked, got] :
         {std::pair{0, 0}, {greatest, greatest}, {greatest - 7, greatest}, {9, least}}) {
        CUstream p = nullptr;
        REQUIRE(world.api.cuStreamCreateWithPriority(&p, CU_STREAM_NON_BLOCKING, asked) == CUDA_SUCCESS);
        int priority = 99;
        CHECK(world.api.cuStreamGetPriority(p, &priority) == CUDA_SUCCESS);
        CHECK(priority == got);
        world.api.cuStreamDestroy(p);
    }
}

// cuStreamGetFlags, cuStreamGetCtx, cuStreamGetId, cuStreamGetDevice.
TEST_CASE("a stream tells its flags, context, device and a number that is its own") {
    World world("lazy");
    std::set<unsigned long long> ids;
    const std::array streams = {static_cast<CUstream>(nullptr), CU_STREAM_PER_THREAD,
                                world.device.stream(CU_STREAM_DEFAULT), world.device.stream()};
    for (const CUstream stream : streams) {
        unsigned flags = 99;
        CUcontext context = nullptr;
        CUdevice device = -1;
        unsigned long long id = 0;
        CHECK(world.api.cuStreamGetFlags(stream, &flags) == CUDA_SUCCESS);
        CHECK(flags == (stream == streams[3] ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
        CHECK(world.api.cuStreamGetCtx(stream, &context) == CUDA_SUCCESS);
        CHECK(context == world.context());
        CHECK(world.api.cuStreamGetDevice(stream, &device) == CUDA_SUCCESS);
        CHECK(device == 0);
        CHECK(world.api.cuStreamGetId(stream, &id) == CUDA_SUCCESS);
        ids.insert(id);
    }
    CHECK(ids.size() == streams.size());
    unsigned long long legacy = 0;
    unsigned long long null = 1;
    world.api.cuStreamGetId(CU_STREAM_LEGACY, &legacy);
    world.api.cuStreamGetId(nullptr, &null);
    CHECK(legacy == null);
}
