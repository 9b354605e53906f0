// Order between streams, through the driver's C ABI. Most claims are tested under the lazy policy: there
// nothing runs before something forces it, so what has run tells exactly what an operation was ordered after.
#include <array>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "client.hpp"

using client::Device;
using client::Library;

namespace {

/// A device under the lazy policy.
struct Lazy {
    Library& library = []() -> Library& {
        static Library& shared = *new Library({{"BASCULE_EMULATED_SCHEDULE", "lazy"}});
        return shared;
    }();
    Device device{library};
    Library& api = device.api;

    /// Pinned memory shows its value at any time, without forcing anything.
    float* pinned() {
        void* host = nullptr;
        REQUIRE(api.cuMemHostAlloc(&host, sizeof(float), 0) == CUDA_SUCCESS);
        *static_cast<float*>(host) = 0.0F;
        return static_cast<float*>(host);
    }
    CUresult increment(float* value, CUstream stream) {
        return device.launch("increment", stream, reinterpret_cast<CUdeviceptr>(value));
    }
    CUresult twice(float* value, CUstream stream) {
        return device.launch("twice", stream, reinterpret_cast<CUdeviceptr>(value));
    }
};

void add_ten(void* value) { *static_cast<float*>(value) += 10.0F; }

}  // namespace

TEST_CASE("a launch returns before its kernel runs, a synchronised stream has run") {
    Lazy lazy;
    float* x = lazy.pinned();
    const CUstream stream = lazy.device.stream();
    CHECK(lazy.increment(x, stream) == CUDA_SUCCESS);
    CHECK(*x == 0.0F);
    CHECK(lazy.api.cuStreamSynchronize(stream) == CUDA_SUCCESS);
    CHECK(*x == 1.0F);
}

TEST_CASE("operations of one stream run in their order") {
    Lazy lazy;
    float* x = lazy.pinned();
    const CUstream stream = lazy.device.stream();
    lazy.increment(x, stream);
    lazy.twice(x, stream);
    lazy.increment(x, stream);
    lazy.api.cuStreamSynchronize(stream);
    CHECK(*x == 3.0F);
}

TEST_CASE("nothing orders two non-blocking streams") {
    Lazy lazy;
    float* x = lazy.pinned();
    const CUstream p = lazy.device.stream();
    const CUstream q = lazy.device.stream();
    lazy.increment(x, p);
    lazy.twice(x, q);
    lazy.api.cuStreamSynchronize(q);
    CHECK(*x == 0.0F);
    lazy.api.cuStreamSynchronize(p);
    CHECK(*x == 1.0F);
}

TEST_CASE("a wait orders later work after what the event marks") {
    Lazy lazy;
    float* x = lazy.pinned();
    const CUstream p = lazy.device.stream();
    const CUstream q = lazy.device.stream();
    const CUevent event = lazy.device.event();
    lazy.increment(x, p);
    lazy.api.cuEventRecord(event, p);
    lazy.api.cuStreamWaitEvent(q, event, 0);
    lazy.twice(x, q);
    lazy.api.cuStreamSynchronize(q);
    CHECK(*x == 2.0F);
}

TEST_CASE("an event does not mark work issued after its record") {
    Lazy lazy;
    float* x = lazy.pinned();
    const CUstream p = lazy.device.stream();
    const CUevent event = lazy.device.event();
    lazy.increment(x, p);
    lazy.api.cuEventRecord(event, p);
    lazy.increment(x, p);
    lazy.api.cuEventSynchronize(event);
    CHECK(*x == 1.0F);
    lazy.api.cuStreamSynchronize(p);
}

TEST_CASE("a wait takes the event as it is at the call, whatever is recorded later") {
    Lazy lazy;
    float* x = lazy.pinned();
    const CUstream p = lazy.device.stream();
    const CUstream q = lazy.device.stream();
    const CUevent event = lazy.device.event();
    lazy.increment(x, p);
    lazy.api.cuEventRecord(event, p);
    lazy.api.cuStreamWaitEvent(q, event, 0);
    lazy.increment(x, p);
    lazy.api.cuEventRecord(event, p);
    lazy.twice(x, q);
    lazy.api.cuStreamSynchronize(q);
    CHECK(*x == 2.0F);  // after the first increment alone
    lazy.api.cuEventSynchronize(event);
    CHECK(*x == 3.0F);
}

TEST_CASE("waiting for an event that was never recorded waits for nothing") {
    Lazy lazy;
    float* x = lazy.pinned();
    const CUstream p = lazy.device.stream();
    const CUevent event = lazy.device.event();
    CHECK(lazy.api.cuEventQuery(event) == CUDA_SUCCESS);
    CHECK(lazy.api.cuStreamWaitEvent(p, event, 0) == CUDA_SUCCESS);
    lazy.increment(x, p);
    CHECK(lazy.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
    CHECK(*x == 1.0F);
}

TEST_CASE("an event may be destroyed while a stream waits for what it marked") {
    Lazy lazy;
    float* x = lazy.pinned();
    const CUstream p = lazy.device.stream();
    const CUstream q = lazy.device.stream();
    CUevent event = nullptr;
    lazy.api.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    lazy.increment(x, p);
    lazy.api.cuEventRecord(event, p);
    lazy.api.cuStreamWaitEvent(q, event, 0);
    CHECK(lazy.api.cuEventDestroy(event) == CUDA_SUCCESS);
    lazy.twice(x, q);
    lazy.api.cuStreamSynchronize(q);
    CHECK(*x == 2.0F);
    CHECK(lazy.api.cuEventDestroy(event) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("the legacy default stream waits for blocking streams and they for it") {
    Lazy lazy;
    float* x = lazy.pinned();
    const CUstream blocking = lazy.device.stream(CU_STREAM_DEFAULT);
    lazy.increment(x, blocking);
    lazy.twice(x, nullptr);
    lazy.increment(x, blocking);
    lazy.api.cuStreamSynchronize(blocking);
    CHECK(*x == 3.0F);
}

TEST_CASE("two blocking streams are ordered through the legacy default stream alone") {
    Lazy lazy;
    float* x = lazy.pinned();
    const CUstream p = lazy.device.stream(CU_STREAM_DEFAULT);
    const CUstream q = lazy.device.stream(CU_STREAM_DEFAULT);
    lazy.increment(x, p);
    lazy.twice(x, q);
    lazy.api.cuStreamSynchronize(q);
    CHECK(*x == 0.0F);
    float* unused = lazy.pinned();
    lazy.increment(unused, CU_STREAM_LEGACY);
    lazy.twice(x, q);
    lazy.api.cuStreamSynchronize(q);
    CHECK(*x == 2.0F);
}

TEST_CASE("the legacy default stream does not wait for a non-blocking stream") {
    Lazy lazy;
    float* x = lazy.pinned();
    const CUstream p = lazy.device.stream(CU_STREAM_NON_BLOCKING);
    lazy.increment(x, p);
    lazy.twice(x, nullptr);
    lazy.api.cuStreamSynchronize(nullptr);
    CHECK(*x == 0.0F);
    lazy.api.cuStreamSynchronize(p);
    CHECK(*x == 1.0F);
}

TEST_CASE("an event recorded on the legacy default stream marks what blocking streams had pending") {
    Lazy lazy;
    float* x = lazy.pinned();
    const CUstream p = lazy.device.stream(CU_STREAM_DEFAULT);
    const CUevent event = lazy.device.event();
    lazy.increment(x, p);
    lazy.api.cuEventRecord(event, nullptr);
    lazy.api.cuEventSynchronize(event);
    CHECK(*x == 1.0F);
}

TEST_CASE("the per-thread default stream is a blocking stream") {
    Lazy lazy;
    float* x = lazy.pinned();
    lazy.increment(x, CU_STREAM_PER_THREAD);
    lazy.twice(x, CU_STREAM_LEGACY);
    lazy.api.cuStreamSynchronize(CU_STREAM_LEGACY);
    CHECK(*x == 2.0F);
}

TEST_CASE("the per-thread variants take NULL for the thread's own stream") {
    Lazy lazy;
    void* function = nullptr;
    CUdriverProcAddressQueryResult result{};
    lazy.api.get_proc_address("cuStreamSynchronize", &function, 13000,
                              CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &result);
    const auto synchronize = reinterpret_cast<PFN_cuStreamSynchronize_v2000>(function);
    float* mine = lazy.pinned();
    float* shared = lazy.pinned();
    lazy.increment(shared, lazy.device.stream(CU_STREAM_DEFAULT));
    lazy.increment(mine, CU_STREAM_PER_THREAD);
    CHECK(synchronize(nullptr) == CUDA_SUCCESS);
    CHECK(*mine == 1.0F);
    CHECK(*shared == 0.0F);  // the legacy stream's NULL would have waited for it
    CHECK(lazy.api.cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
    CHECK(*shared == 1.0F);
}

TEST_CASE("the context's synchronisation runs everything, destruction of a stream what it holds") {
    Lazy lazy;
    float* x = lazy.pinned();
    float* y = lazy.pinned();
    CUstream p = nullptr;
    lazy.api.cuStreamCreate(&p, CU_STREAM_NON_BLOCKING);
    lazy.increment(x, p);
    CHECK(lazy.api.cuStreamDestroy(p) == CUDA_SUCCESS);
    CHECK(lazy.api.cuStreamSynchronize(p) == CUDA_ERROR_INVALID_HANDLE);
    lazy.increment(y, lazy.device.stream());
    lazy.api.cuCtxSynchronize();
    CHECK(*x == 1.0F);
    CHECK(*y == 1.0F);
}

TEST_CASE("polling ends") {
    Lazy lazy;
    float* x = lazy.pinned();
    const CUstream p = lazy.device.stream();
    const CUevent event = lazy.device.event();
    lazy.increment(x, p);
    lazy.api.cuEventRecord(event, p);
    int polls = 0;
    while (lazy.api.cuEventQuery(event) == CUDA_ERROR_NOT_READY && polls < 1000) ++polls;
    CHECK(polls < 1000);
    CHECK(*x == 1.0F);
    CHECK(lazy.api.cuStreamQuery(p) == CUDA_SUCCESS);
}

TEST_CASE("host functions run in their stream's order") {
    Lazy lazy;
    float* x = lazy.pinned();
    const CUstream p = lazy.device.stream();
    lazy.increment(x, p);
    lazy.api.cuLaunchHostFunc(p, add_ten, x);
    lazy.twice(x, p);
    CHECK(*x == 0.0F);
    lazy.api.cuStreamSynchronize(p);
    CHECK(*x == 22.0F);
}

TEST_CASE("pageable memory is read at the call, pinned memory when the copy runs") {
    Lazy lazy;
    const CUstream p = lazy.device.stream();
    const CUdeviceptr x = lazy.device.allocate(8);
    float pageable = 1.0F;
    float* pinned = lazy.pinned();
    *pinned = 1.0F;
    lazy.api.cuMemcpyHtoDAsync(x, &pageable, 4, p);
    lazy.api.cuMemcpyHtoDAsync(x + 4, pinned, 4, p);
    pageable = *pinned = 2.0F;
    lazy.api.cuStreamSynchronize(p);
    std::array<float, 2> values{};
    lazy.api.cuMemcpyDtoH(values.data(), x, sizeof values);
    CHECK(values[0] == 1.0F);
    CHECK(values[1] == 2.0F);
}

TEST_CASE("a copy to pageable memory is done when it returns") {
    Lazy lazy;
    const CUstream p = lazy.device.stream();
    const CUdeviceptr x = lazy.device.floats(1, 1.0F);
    lazy.device.launch("increment", p, x);
    float value = 0;
    lazy.api.cuMemcpyDtoHAsync(&value, x, sizeof value, p);
    CHECK(value == 2.0F);
}

TEST_CASE("freeing waits for the kernels that may use the memory") {
    Lazy lazy;
    float* x = lazy.pinned();
    const CUstream p = lazy.device.stream();
    CUdeviceptr y = 0;
    lazy.api.cuMemAlloc(&y, sizeof(float));
    lazy.api.cuMemsetD32Async(y, 0, 1, p);
    lazy.device.launch("increment", p, y);
    lazy.api.cuMemcpyDtoHAsync(x, y, sizeof(float), p);
    CHECK(lazy.api.cuMemFree(y) == CUDA_SUCCESS);
    CHECK(*x == 1.0F);
    CHECK(lazy.api.cuCtxSynchronize() == CUDA_SUCCESS);
}

TEST_CASE("a fault stops what comes after it") {
    Library library({{"BASCULE_EMULATED_SCHEDULE", "lazy"}});
    Device device(library);
    void* host = nullptr;
    REQUIRE(library.cuMemHostAlloc(&host, sizeof(float), 0) == CUDA_SUCCESS);
    *static_cast<float*>(host) = 1.0F;
    const auto x = reinterpret_cast<CUdeviceptr>(host);
    const CUstream p = device.stream();
    CHECK(device.launch("trap", p, x) == CUDA_SUCCESS);
    CHECK(device.launch("increment", p, x) == CUDA_SUCCESS);
    CHECK(library.cuMemsetD32Async(x, 0, 1, p) == CUDA_SUCCESS);
    CHECK(library.cuStreamSynchronize(p) == CUDA_ERROR_ILLEGAL_INSTRUCTION);
    CHECK(*static_cast<float*>(host) == 1.0F);
}

TEST_CASE("the time between two events is that of the work between them") {
    Lazy lazy;
    const CUstream p = lazy.device.stream();
    const CUevent start = lazy.device.event();
    const CUevent end = lazy.device.event();
    float milliseconds = -1.0F;
    CHECK(lazy.api.cuEventElapsedTime(&milliseconds, start, end) == CUDA_ERROR_INVALID_HANDLE);
    lazy.api.cuEventRecord(start, p);
    lazy.increment(lazy.pinned(), p);
    lazy.api.cuEventRecord(end, p);
    lazy.api.cuStreamSynchronize(p);
    CHECK(lazy.api.cuEventElapsedTime(&milliseconds, start, end) == CUDA_SUCCESS);
    CHECK(milliseconds >= 0.0F);
    CUevent untimed = nullptr;
    lazy.api.cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING);
    lazy.api.cuEventRecord(untimed, p);
    CHECK(lazy.api.cuEventElapsedTime(&milliseconds, start, untimed) == CUDA_ERROR_INVALID_HANDLE);
    lazy.api.cuEventDestroy(untimed);
}

TEST_CASE("the trace has what was issued, in its order, with the handles as they were given") {
    Device device;
    const CUdeviceptr x = device.floats(1, 0.0F);
    const CUstream p = device.stream();
    const CUevent event = device.event();
    device.api.trace(1);
    device.api.cuEventRecord(event, p);
    device.api.cuStreamWaitEvent(CU_STREAM_LEGACY, event, 0);
    device.launch("increment", CU_STREAM_PER_THREAD, x);
    device.api.cuMemsetD8Async(x, 0, 4, nullptr);
    device.api.trace(0);
    device.launch("increment", p, x);  // not recorded any more

    const auto operations = device.api.operations();
    REQUIRE(operations.size() == 4);
    CHECK(operations[0].kind == BASCULE_EMULATED_RECORD);
    CHECK(operations[0].stream == reinterpret_cast<std::uint64_t>(p));
    CHECK(operations[0].event == reinterpret_cast<std::uint64_t>(event));
    CHECK(operations[1].kind == BASCULE_EMULATED_WAIT);
    CHECK(operations[1].stream == 1);
    CHECK(operations[1].event == reinterpret_cast<std::uint64_t>(event));
    CHECK(operations[2].kind == BASCULE_EMULATED_LAUNCH);
    CHECK(operations[2].stream == 2);
    CHECK(std::string(operations[2].name) == "increment");
    CHECK(operations[2].device == 0);
    CHECK(operations[3].kind == BASCULE_EMULATED_FILL);
    CHECK(operations[3].stream == 0);
    CHECK(operations[3].bytes == 4);
}

TEST_CASE("an event belongs to its context") {
    Device device;
    const CUstream p = device.stream();
    CUcontext other = nullptr;
    device.api.cuCtxCreate(&other, nullptr, 0, 0);
    CUevent event = nullptr;
    device.api.cuEventCreate(&event, CU_EVENT_DEFAULT);
    CHECK(device.api.cuEventRecord(event, p) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(device.api.cuEventRecord(event, nullptr) == CUDA_SUCCESS);
    CHECK(device.api.cuStreamWaitEvent(p, event, 0) == CUDA_SUCCESS);  // waiting may cross contexts
    CUcontext of_stream = nullptr;
    device.api.cuStreamGetCtx(p, &of_stream);
    CHECK(of_stream != other);
    device.api.cuCtxDestroy(other);
    CHECK(device.api.cuEventQuery(event) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE(
    "whether a stream is being captured is asked as often as one likes, and never of one that is gone") {
    Device device;
    const auto ask = [&](CUstream stream) {
        CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
        const CUresult code = device.api.cuStreamIsCapturing(stream, &status);
        CHECK((code != CUDA_SUCCESS || status == CU_STREAM_CAPTURE_STATUS_NONE));
        return code;
    };
    CUcontext other = nullptr;
    REQUIRE(device.api.cuCtxCreate(&other, nullptr, 0, 0) == CUDA_SUCCESS);
    CUstream of_other = nullptr;
    REQUIRE(device.api.cuStreamCreateWithPriority(&of_other, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS);
    std::vector<CUstream> streams(20);  // more than a thread remembers
    for (CUstream& stream : streams)
        REQUIRE(device.api.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS);
    for (int round = 0; round < 3; ++round) {
        for (const CUstream stream : streams) CHECK(ask(stream) == CUDA_SUCCESS);
        CHECK(ask(of_other) == CUDA_SUCCESS);
        CHECK(ask(nullptr) == CUDA_SUCCESS);
        CHECK(ask(CU_STREAM_PER_THREAD) == CUDA_SUCCESS);
    }
    CHECK(device.api.cuStreamIsCapturing(streams[0], nullptr) == CUDA_ERROR_INVALID_VALUE);
    std::thread([&] { CHECK(device.api.cuStreamDestroy(streams.back()) == CUDA_SUCCESS); }).join();
    CHECK(ask(streams.back()) == CUDA_ERROR_INVALID_HANDLE);
    streams.pop_back();
    for (const CUstream stream : streams) {
        CHECK(ask(stream) == CUDA_SUCCESS);
        CHECK(device.api.cuStreamDestroy(stream) == CUDA_SUCCESS);
        CHECK(ask(stream) == CUDA_ERROR_INVALID_HANDLE);
    }
    CHECK(ask(of_other) == CUDA_SUCCESS);
    CHECK(device.api.cuCtxDestroy(other) == CUDA_SUCCESS);
    CHECK(ask(of_other) == CUDA_ERROR_INVALID_HANDLE);
}
