// Events as specified by the driver API's documentation, under every policy. Each test names its source.
#include <thread>

#include "world.hpp"

using client::Busy;
using client::under_each_policy;
using client::World;

// cuEventRecord: "captures in hEvent the contents of hStream at the time of this call".
TEST_CASE("an event that is recorded again marks the newer place alone") {
    under_each_policy([](World& world) {
        float* x = world.pinned();
        const CUstream p = world.device.stream();
        const CUstream q = world.device.stream();
        const CUevent event = world.device.event();
        world.increment(x, p);
        world.api.cuEventRecord(event, p);
        Busy busy(world, q);
        world.api.cuEventRecord(event, q);
        CHECK(world.api.cuEventQuery(event) == CUDA_ERROR_NOT_READY);
        busy.release();
        CHECK(world.api.cuEventSynchronize(event) == CUDA_SUCCESS);
        CHECK(world.api.cuEventQuery(event) == CUDA_SUCCESS);
        world.api.cuStreamSynchronize(p);
    });
}

// cuEventRecord: waits "use the most recently captured state at the time of the API call, and are not affected by later
// calls to cuEventRecord()".
TEST_CASE("a wait takes the state of the event at its call") {
    under_each_policy([](World& world) {
        float* x = world.pinned();
        const CUstream p = world.device.stream();
        const CUstream q = world.device.stream();
        const CUstream busy_one = world.device.stream();
        const CUevent event = world.device.event();
        world.increment(x, p);
        world.api.cuEventRecord(event, p);
        world.api.cuStreamWaitEvent(q, event, 0);
        Busy busy(world, busy_one);
        world.api.cuEventRecord(event, busy_one);
        world.twice(x, q);
        CHECK(world.api.cuStreamSynchronize(q) == CUDA_SUCCESS);  // does not wait for the busy one
        CHECK(*x == 2.0F);
        CHECK(world.api.cuEventQuery(event) == CUDA_ERROR_NOT_READY);
    });
}

// cuEventRecord: "Before the first call to cuEventRecord(), an event represents an empty set of work".
TEST_CASE("an event that was never recorded holds nobody") {
    under_each_policy([](World& world) {
        const CUstream p = world.device.stream();
        const CUevent event = world.device.event();
        CHECK(world.api.cuEventQuery(event) == CUDA_SUCCESS);
        CHECK(world.api.cuEventSynchronize(event) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamWaitEvent(p, event, 0) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
    });
}

// cuEventElapsedTime: INVALID_HANDLE if one was never recorded or has no timing, NOT_READY if one is not complete.
TEST_CASE("elapsed time needs two timed events that have happened") {
    under_each_policy([](World& world) {
        const CUstream p = world.device.stream();
        const CUevent start = world.device.event();
        const CUevent end = world.device.event();
        float milliseconds = -1.0F;
        const auto elapsed = [&] { return world.api.cuEventElapsedTime(&milliseconds, start, end); };
        CHECK(elapsed() == CUDA_ERROR_INVALID_HANDLE);
        world.api.cuEventRecord(start, p);
        CHECK(elapsed() == CUDA_ERROR_INVALID_HANDLE);
        {
            Busy busy(world, p);
            world.api.cuEventRecord(end, p);
            CHECK(elapsed() == CUDA_ERROR_NOT_READY);
            std::this_thread::sleep_for(std::chrono::milliseconds(3));  // the measured time
        }
        CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
        CHECK(elapsed() == CUDA_SUCCESS);
        CHECK(milliseconds >= 3.0F);
        CHECK(milliseconds < 60000.0F);

        CUevent untimed = nullptr;
        REQUIRE(world.api.cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
        world.api.cuEventRecord(untimed, p);
        CHECK(world.api.cuEventElapsedTime(&milliseconds, start, untimed) == CUDA_ERROR_INVALID_HANDLE);
        CHECK(world.api.cuEventElapsedTime(nullptr, start, end) == CUDA_ERROR_INVALID_VALUE);
        world.api.cuEventDestroy(untimed);
    });
}

// cuEventRecord, cuEventSynchronize, cuEventElapsedTime, cuEventDestroy: INVALID_CONTEXT.
TEST_CASE("an event is asked while a context is current") {
    under_each_policy([](World& world) {
        const CUevent event = world.device.event();
        const CUstream stream = world.device.stream();
        const CUcontext context = world.context();
        float milliseconds = 0;
        CHECK(world.api.cuCtxSetCurrent(nullptr) == CUDA_SUCCESS);
        CHECK(world.api.cuEventRecord(event, stream) == CUDA_ERROR_INVALID_CONTEXT);
        CHECK(world.api.cuEventQuery(event) == CUDA_ERROR_INVALID_CONTEXT);
        CHECK(world.api.cuEventSynchronize(event) == CUDA_ERROR_INVALID_CONTEXT);
        CHECK(world.api.cuEventElapsedTime(&milliseconds, event, event) == CUDA_ERROR_INVALID_CONTEXT);
        CHECK(world.api.cuEventDestroy(event) == CUDA_ERROR_INVALID_CONTEXT);
        CHECK(world.api.cuCtxSetCurrent(context) == CUDA_SUCCESS);
        CHECK(world.api.cuEventRecord(event, stream) == CUDA_SUCCESS);
    });
}

// cuEventCreate: CU_EVENT_BLOCKING_SYNC only selects how the host waits; INTERPROCESS requires timing to be disabled.
TEST_CASE("flags of events: blocking waits, no timing, unknown ones") {
    under_each_policy([](World& world) {
        const CUstream p = world.device.stream();
        float* x = world.pinned();
        CUevent event = nullptr;
        REQUIRE(world.api.cuEventCreate(&event, CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING) ==
                CUDA_SUCCESS);
        world.increment(x, p);
        world.api.cuEventRecord(event, p);
        CHECK(world.api.cuEventSynchronize(event) == CUDA_SUCCESS);
        CHECK(*x == 1.0F);
        world.api.cuEventDestroy(event);
        CHECK(world.api.cuEventCreate(&event, 64) == CUDA_ERROR_INVALID_VALUE);
        CHECK(world.api.cuEventRecordWithFlags(world.device.event(), p, 77) == CUDA_ERROR_INVALID_VALUE);
        CHECK(world.api.cuStreamWaitEvent(p, world.device.event(), 77) == CUDA_ERROR_INVALID_VALUE);
    });
}

// cuEventRecord: "hEvent and hStream must be from the same context"; cuStreamWaitEvent: the event "may be
// from a different context or device".
TEST_CASE("records stay in a context, waits cross contexts and devices") {
    under_each_policy(
        [](World& world) {
            float* x = world.pinned();
            const CUstream p = world.device.stream();
            const CUevent event = world.device.event();
            CUcontext other = nullptr;
            REQUIRE(world.api.cuDevicePrimaryCtxRetain(&other, 1) == CUDA_SUCCESS);
            world.api.cuCtxPushCurrent(other);
            CUstream q = nullptr;
            CUevent foreign = nullptr;
            world.api.cuStreamCreate(&q, CU_STREAM_NON_BLOCKING);
            world.api.cuEventCreate(&foreign, CU_EVENT_DEFAULT);
            CHECK(world.api.cuEventRecord(foreign, p) == CUDA_ERROR_INVALID_HANDLE);
            CHECK(world.api.cuEventRecord(event, q) == CUDA_ERROR_INVALID_HANDLE);
            CHECK(world.api.cuEventRecord(event, nullptr) == CUDA_ERROR_INVALID_HANDLE);

            world.increment(x, p);
            CHECK(world.api.cuEventRecord(event, p) == CUDA_SUCCESS);
            CHECK(world.api.cuStreamWaitEvent(q, event, 0) == CUDA_SUCCESS);
            world.twice(x, q);
            CHECK(world.api.cuEventRecord(foreign, q) == CUDA_SUCCESS);
            CHECK(world.api.cuStreamWaitEvent(p, foreign, 0) == CUDA_SUCCESS);
            world.increment(x, p);
            CHECK(world.api.cuEventQuery(event) != CUDA_ERROR_INVALID_HANDLE);
            CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
            CHECK(*x == 3.0F);
            world.api.cuEventDestroy(foreign);
            world.api.cuStreamDestroy(q);
            world.api.cuCtxPopCurrent(nullptr);
            world.api.cuDevicePrimaryCtxRelease(1);
        },
        2);
}

// cuStreamWaitEvent: the wait is ordered like any work of the stream.
TEST_CASE("streams that wait for each other in a loop take turns") {
    under_each_policy([](World& world) {
        float* x = world.pinned();
        const CUstream p = world.device.stream();
        const CUstream q = world.device.stream();
        const CUevent event = world.device.event();
        float expected = 0.0F;
        for (int i = 0; i < 12; ++i) {
            world.increment(x, p);
            world.api.cuEventRecord(event, p);
            world.api.cuStreamWaitEvent(q, event, 0);
            world.twice(x, q);
            world.api.cuEventRecord(event, q);
            world.api.cuStreamWaitEvent(p, event, 0);
            expected = (expected + 1.0F) * 2.0F;
        }
        CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
        CHECK(*x == expected);
    });
}

// cuEventDestroy: "may be destroyed before it is complete"; waits that were already issued remain.
TEST_CASE("a destroyed event still holds back the streams that wait for it") {
    under_each_policy([](World& world) {
        float* x = world.pinned();
        const CUstream p = world.device.stream();
        const CUstream q = world.device.stream();
        for (int i = 0; i < 10; ++i) {
            CUevent event = nullptr;
            REQUIRE(world.api.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
            world.increment(x, p);
            world.api.cuEventRecord(event, p);
            world.api.cuStreamWaitEvent(q, event, 0);
            CHECK(world.api.cuEventDestroy(event) == CUDA_SUCCESS);
            CHECK(world.api.cuEventDestroy(event) == CUDA_ERROR_INVALID_HANDLE);
        }
        world.twice(x, q);
        CHECK(world.api.cuStreamSynchronize(q) == CUDA_SUCCESS);
        CHECK(*x == 20.0F);
    });
}

// cuEventSynchronize: "Waits until the completion of all work currently captured in hEvent", and no longer.
TEST_CASE("waiting for an event does not wait for what came after it") {
    under_each_policy([](World& world) {
        float* x = world.pinned();
        const CUstream p = world.device.stream();
        const CUevent event = world.device.event();
        world.increment(x, p);
        world.api.cuEventRecord(event, p);
        Busy busy(world, p);
        CHECK(world.api.cuEventSynchronize(event) == CUDA_SUCCESS);
        CHECK(*x == 1.0F);
        CHECK(world.api.cuStreamQuery(p) == CUDA_ERROR_NOT_READY);
    });
}
