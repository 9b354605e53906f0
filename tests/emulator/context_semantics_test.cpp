// Contexts and devices as specified by the driver API's documentation. Each test names its source.
#include <array>
#include <string>
#include <thread>

#include "world.hpp"

using client::Library;
using client::under_each_policy;
using client::World;

namespace {

/// Makes another device's primary context current during its lifetime.
class Other {
  public:
    Other(World& world, int device) : api_(world.api), device_(device) {
        REQUIRE(api_.cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS);
        api_.cuCtxPushCurrent(context);
    }
    ~Other() {
        api_.cuCtxPopCurrent(nullptr);
        api_.cuDevicePrimaryCtxRelease(device_);
    }
    Other(const Other&) = delete;
    Other& operator=(const Other&) = delete;

    CUcontext context = nullptr;

  private:
    Library& api_;
    int device_;
};

bool context_active(World& world, int device) {
    unsigned flags = 0;
    int is_active = -1;
    REQUIRE(world.api.cuDevicePrimaryCtxGetState(device, &flags, &is_active) == CUDA_SUCCESS);
    return is_active == 1;
}

}  // namespace

// cuStreamWaitEvent: "hEvent may be from a different context or device than hStream".
TEST_CASE("three devices pass a value around, ordered by events alone") {
    under_each_policy(
        [](World& world) {
            float* x = world.pinned();
            std::array<CUcontext, 3> contexts = {world.context()};
            std::array<CUstream, 3> streams = {world.device.stream()};
            std::array<CUevent, 3> events = {world.device.event()};
            for (std::size_t i = 1; i < 3; ++i) {
                REQUIRE(world.api.cuDevicePrimaryCtxRetain(&contexts[i], static_cast<int>(i)) ==
                        CUDA_SUCCESS);
                world.api.cuCtxPushCurrent(contexts[i]);
                world.api.cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING);
                world.api.cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING);
                world.api.cuCtxPopCurrent(nullptr);
            }
            float expected = 0.0F;
            for (std::size_t i = 0; i < 9; ++i) {
                const std::size_t at = i % 3;
                world.api.cuCtxPushCurrent(contexts[at]);
                if (i > 0)
                    CHECK(world.api.cuStreamWaitEvent(streams[at], events[(i - 1) % 3], 0) == CUDA_SUCCESS);
                CHECK((i % 2 == 0 ? world.increment(x, streams[at]) : world.twice(x, streams[at])) ==
                      CUDA_SUCCESS);
                CHECK(world.api.cuEventRecord(events[at], streams[at]) == CUDA_SUCCESS);
                expected = i % 2 == 0 ? expected + 1.0F : expected * 2.0F;
                world.api.cuCtxPopCurrent(nullptr);
            }
            CHECK(world.api.cuEventSynchronize(events[2]) == CUDA_SUCCESS);
            CHECK(*x == expected);
            for (const int device : {1, 2}) world.api.cuDevicePrimaryCtxRelease(device);
        },
        3);
}

// cuCtxSynchronize: "Blocks until the current context has completed all preceding requested tasks", not other
// contexts.
TEST_CASE("synchronising a context does not wait for another device's") {
    under_each_policy(
        [](World& world) {
            CUstream there = nullptr;
            Other other(world, 1);
            world.api.cuStreamCreate(&there, CU_STREAM_NON_BLOCKING);
            client::Busy busy(world, there);
            world.api.cuCtxPushCurrent(nullptr);
            world.api.cuCtxPopCurrent(nullptr);
            CUcontext first = nullptr;
            world.api.cuDevicePrimaryCtxRetain(&first, 0);
            world.api.cuCtxPushCurrent(first);
            CHECK(world.api.cuCtxSynchronize() == CUDA_SUCCESS);
            world.api.cuCtxPopCurrent(nullptr);
            world.api.cuDevicePrimaryCtxRelease(0);
            CHECK(world.api.cuStreamQuery(there) == CUDA_ERROR_NOT_READY);
        },
        2);
}

// cuDeviceCanAccessPeer, cuDeviceGetP2PAttribute.
TEST_CASE("a device can access every other one, and says so") {
    World world("lazy", 3);
    for (const int device : {0, 1, 2}) {
        for (const int peer : {0, 1, 2}) {
            int can = -1;
            CHECK(world.api.cuDeviceCanAccessPeer(&can, device, peer) == CUDA_SUCCESS);
            CHECK(can == (device == peer ? 0 : 1));
            const CUresult result = world.api.cuDeviceGetP2PAttribute(
                &can, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, device, peer);
            CHECK(result == (device == peer ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS));
        }
    }
    int can = 0;
    CHECK(world.api.cuDeviceCanAccessPeer(&can, 0, 3) == CUDA_ERROR_INVALID_DEVICE);
}

// cuCtxEnablePeerAccess, cuCtxDisablePeerAccess: their errors.
TEST_CASE("peer access is enabled once and disabled once") {
    World world("lazy", 2);
    const CUcontext mine = world.context();
    CUcontext peer = nullptr;
    REQUIRE(world.api.cuDevicePrimaryCtxRetain(&peer, 1) == CUDA_SUCCESS);
    const auto& api = world.api;
    CHECK(api.cuCtxDisablePeerAccess(peer) == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    CHECK(api.cuCtxEnablePeerAccess(peer, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(api.cuCtxEnablePeerAccess(mine, 0) == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    CHECK(api.cuCtxEnablePeerAccess(nullptr, 0) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(api.cuCtxEnablePeerAccess(peer, 0) == CUDA_SUCCESS);
    CHECK(api.cuCtxEnablePeerAccess(peer, 0) == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    CHECK(api.cuCtxDisablePeerAccess(peer) == CUDA_SUCCESS);
    CHECK(api.cuCtxDisablePeerAccess(peer) == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    CUcontext same_device = nullptr;
    REQUIRE(api.cuCtxCreate(&same_device, nullptr, 0, 0) == CUDA_SUCCESS);
    CHECK(api.cuCtxEnablePeerAccess(mine, 0) == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    api.cuCtxDestroy(same_device);
    api.cuDevicePrimaryCtxRelease(1);
}

// cuCtxEnablePeerAccess: "on success all allocations from peerContext will immediately be accessible by the
// current context". The other direction needs a call of its own.
TEST_CASE("a kernel reads another device's memory after peer access is enabled, and faults before") {
    for (const std::string& policy : client::policies) {
        CAPTURE(policy);
        Library library({{"BASCULE_EMULATED_SCHEDULE", policy.c_str()}, {"BASCULE_EMULATED_DEVICES", "2"}});
        World world(library);
        CUcontext peer = nullptr;
        CUdeviceptr theirs = 0;
        {
            Other other(world, 1);
            REQUIRE(library.cuDevicePrimaryCtxRetain(&peer, 1) == CUDA_SUCCESS);  // kept
            REQUIRE(library.cuMemAlloc(&theirs, 4) == CUDA_SUCCESS);
            REQUIRE(library.cuMemsetD32(theirs, 0, 1) == CUDA_SUCCESS);
            REQUIRE(library.cuCtxSynchronize() == CUDA_SUCCESS);
        }
        const CUdeviceptr mine = world.device.floats(1, 0.0F);
        CHECK(library.cuCtxEnablePeerAccess(peer, 0) == CUDA_SUCCESS);
        CHECK(world.device.launch("increment", nullptr, theirs) == CUDA_SUCCESS);
        CHECK(library.cuCtxSynchronize() == CUDA_SUCCESS);
        CHECK(world.device.read(theirs) == 1.0F);

        library.cuCtxPushCurrent(peer);
        CHECK(world.device.launch("increment", nullptr, mine) == CUDA_SUCCESS);  // the other direction
        CHECK(library.cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
        const std::string report = library.report();
        CAPTURE(report);
        CHECK(report.find("memory of device 0, and the kernel runs on device 1") != std::string::npos);
        library.cuCtxPopCurrent(nullptr);
        CHECK(library.cuCtxSynchronize() == CUDA_SUCCESS);  // the fault is in the other context
    }
}

// cuDevicePrimaryCtxRelease: "The context is automatically reset once the last reference to it is released."
TEST_CASE("a primary context is active while it is retained") {
    Library library({{"BASCULE_EMULATED_DEVICES", "2"}});
    World world(library);
    CHECK(context_active(world, 0));
    CHECK_FALSE(context_active(world, 1));
    CUcontext one = nullptr;
    CUcontext same = nullptr;
    CHECK(library.cuDevicePrimaryCtxRetain(&one, 1) == CUDA_SUCCESS);
    CHECK(library.cuDevicePrimaryCtxRetain(&same, 1) == CUDA_SUCCESS);
    CHECK(one == same);
    library.cuCtxPushCurrent(one);
    CUstream stream = nullptr;
    CUdeviceptr x = 0;
    library.cuStreamCreate(&stream, 0);
    library.cuMemAlloc(&x, 4);
    CHECK(library.cuDevicePrimaryCtxRelease(1) == CUDA_SUCCESS);
    CHECK(context_active(world, 1));
    CHECK(library.cuStreamSynchronize(stream) == CUDA_SUCCESS);
    CHECK(library.cuDevicePrimaryCtxRelease(1) == CUDA_SUCCESS);
    CHECK_FALSE(context_active(world, 1));
    CHECK(library.cuCtxSynchronize() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK(library.cuDevicePrimaryCtxRelease(1) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(library.cuDevicePrimaryCtxRetain(&same, 1) == CUDA_SUCCESS);
    CHECK(library.cuStreamSynchronize(stream) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(library.cuMemFree(x) == CUDA_ERROR_INVALID_VALUE);
    library.cuDevicePrimaryCtxRelease(1);
    library.cuCtxPopCurrent(nullptr);
}

// cuDevicePrimaryCtxReset: "Destroy all allocations and reset all state on the primary context".
TEST_CASE("a reset takes everything of the context, pending work and peers included, and leaves it usable") {
    for (const std::string& policy : client::policies) {
        CAPTURE(policy);
        Library library({{"BASCULE_EMULATED_SCHEDULE", policy.c_str()}, {"BASCULE_EMULATED_DEVICES", "2"}});
        World world(library);
        CUcontext peer = nullptr;
        library.cuDevicePrimaryCtxRetain(&peer, 1);
        CHECK(library.cuCtxEnablePeerAccess(peer, 0) == CUDA_SUCCESS);
        CUstream stream = nullptr;
        CUdeviceptr x = 0;
        CUevent event = nullptr;
        library.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
        library.cuMemAllocAsync(&x, 4096, stream);
        library.cuEventCreate(&event, 0);
        CHECK(library.cuDevicePrimaryCtxReset(0) == CUDA_SUCCESS);
        CHECK(library.cuStreamQuery(stream) == CUDA_ERROR_INVALID_HANDLE);
        CHECK(library.cuEventQuery(event) == CUDA_ERROR_INVALID_HANDLE);
        CHECK(library.cuMemFree(x) == CUDA_ERROR_INVALID_VALUE);
        CHECK(library.cuCtxEnablePeerAccess(peer, 0) == CUDA_SUCCESS);  // peer access was reset
        float* y = world.pinned(1.0F);
        CHECK(library.cuMemsetD32Async(reinterpret_cast<CUdeviceptr>(y), 0, 1, nullptr) == CUDA_SUCCESS);
        CHECK(library.cuCtxSynchronize() == CUDA_SUCCESS);
        CHECK(*y == 0.0F);
    }
}
