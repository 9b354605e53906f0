// Streams, events and memory through the driver's C ABI, beyond the *_semantics tests. Under the lazy policy nothing
// runs before something forces it, so the operations that have run show the order.
#include <thread>
#include <vector>

#include "world.hpp"

using client::Device;
using client::World;

TEST_CASE("the per-thread variants take NULL for the thread's own stream") {
    World lazy("lazy");
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
    CHECK(*shared == 0.0F);  // the legacy stream would have waited for it
    CHECK(lazy.api.cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
    CHECK(*shared == 1.0F);
}

TEST_CASE("freeing waits for the kernels that may use the memory") {
    World lazy("lazy");
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
    std::vector<CUstream> streams(20);  // more than a thread's cache holds
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
