// Device memory and events in two processes. <cuda.h>: cuIpcGetMemHandle, cuIpcOpenMemHandle, cuIpcCloseMemHandle,
// cuIpcGetEventHandle, cuIpcOpenEventHandle.
#include <array>
#include <future>
#include <numeric>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "child.hpp"
#include "world.hpp"

namespace client {
namespace {

template <class Handle>
std::string digits_of(const Handle& handle) {
    std::string digits;
    for (const char byte : handle.reserved) digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    return digits;
}

child_process::Variables given(const CUipcMemHandle& handle) {
    return {{"BASCULE_TEST_MEMORY", digits_of(handle)}};
}

CUipcMemHandle export_memory(World& world, CUdeviceptr memory) {
    CUipcMemHandle handle = {};
    REQUIRE(world.api.cuIpcGetMemHandle(&handle, memory) == CUDA_SUCCESS);
    return handle;
}

/// An allocation of device memory with its own values.
struct Values {
    Values(World& world, std::size_t count, std::mt19937& random)
        : host(count), memory(world.device.allocate(count * sizeof(float))) {
        for (float& value : host) value = static_cast<float>(random() % 1000);
        REQUIRE(world.api.cuMemcpyHtoD(memory, host.data(), count * sizeof(float)) == CUDA_SUCCESS);
    }
    std::vector<float> read(World& world) const {
        std::vector<float> values(host.size());
        REQUIRE(world.api.cuMemcpyDtoH(values.data(), memory, values.size() * sizeof(float)) == CUDA_SUCCESS);
        return values;
    }
    std::vector<float> host;
    CUdeviceptr memory;
};

}  // namespace

TEST_CASE("another process writes to memory that it opens, and to nothing beside it") {
    std::mt19937 random(20261124);
    for (const std::string policy : {"eager", "lazy", "threads"}) {
        CAPTURE(policy);
        World world(policy);
        for (const std::size_t count : {2UL, 64UL, 900UL, 1024UL}) {
            std::vector<Values> all;  // several in one page: the second and the fourth are shared
            for (int i = 0; i < 5; ++i) all.emplace_back(world, count, random);
            const CUipcMemHandle handle = export_memory(world, all[1].memory);
            export_memory(world, all[3].memory);
            for (const Values& each : all) CHECK(each.read(world) == each.host);
            const auto child = run_child("use memory of the parent", policy, given(handle));
            CHECK(child.exit_code == 0);
            CHECK(child.output ==
                  fmt::format("the same 1, bytes {}, freed {}, exported {}, closed 0, closed 0, "
                              "closed {}, read {}, freed {}\n",
                              count * sizeof(float), +CUDA_ERROR_INVALID_VALUE, +CUDA_ERROR_INVALID_VALUE,
                              +CUDA_ERROR_INVALID_VALUE, +CUDA_ERROR_INVALID_VALUE,
                              +CUDA_ERROR_INVALID_VALUE));
            for (std::size_t i = 0; i + 1 < count; ++i) all[1].host[i] += 1;
            for (const Values& each : all) CHECK(each.read(world) == each.host);
        }
    }
}

TEST_CASE("kernels of two processes meet in memory that both have") {
    World world("threads");
    const CUdeviceptr meeting = world.device.allocate(2 * sizeof(unsigned));
    const std::array<unsigned, 2> begin = {0, 2};
    REQUIRE(world.api.cuMemcpyHtoD(meeting, begin.data(), sizeof begin) == CUDA_SUCCESS);
    const CUipcMemHandle handle = export_memory(world, meeting);
    const CUstream stream = world.device.stream();
    REQUIRE(world.device.launch("meet", stream, meeting) == CUDA_SUCCESS);
    CHECK(run_child("meet the parent", "threads", given(handle)).exit_code == 0);
    CHECK(world.api.cuStreamSynchronize(stream) == CUDA_SUCCESS);
}

// "If a region of memory is freed with cuMemFree and a subsequent call to cuMemAlloc returns memory with the same device
// address, cuIpcGetMemHandle will return a unique handle for the new memory."
TEST_CASE("a handle is of one allocation, and the same each time") {
    World world("lazy");
    std::vector<CUipcMemHandle> handles;
    const auto equal = [](const CUipcMemHandle& a, const CUipcMemHandle& b) {
        return std::equal(std::begin(a.reserved), std::end(a.reserved), std::begin(b.reserved));
    };
    for (int i = 0; i < 20; ++i) {
        CUdeviceptr memory = 0;
        REQUIRE(world.api.cuMemAlloc(&memory, 100'000) == CUDA_SUCCESS);
        std::vector<unsigned char> bytes(100'000, 1);
        REQUIRE(world.api.cuMemcpyHtoD(memory, bytes.data(), bytes.size()) == CUDA_SUCCESS);
        const CUipcMemHandle handle = export_memory(world, memory);
        CHECK(equal(handle, export_memory(world, memory)));
        for (const CUipcMemHandle& other : handles) CHECK_FALSE(equal(handle, other));
        handles.push_back(handle);
        REQUIRE(world.api.cuMemFree(memory) == CUDA_SUCCESS);
    }
}

TEST_CASE("what cannot be shared or opened is refused with a reason") {
    World world("lazy");
    CUipcMemHandle handle = {};
    const CUdeviceptr memory = world.device.allocate(4096);
    CHECK(world.api.cuIpcGetMemHandle(nullptr, memory) == CUDA_ERROR_INVALID_VALUE);
    CHECK(world.api.cuIpcGetMemHandle(&handle, memory + 4) == CUDA_ERROR_INVALID_VALUE);
    CHECK(world.api.report().find("at byte 4 of the 4096-byte allocation") != std::string::npos);
    CHECK(world.api.cuIpcGetMemHandle(&handle, reinterpret_cast<CUdeviceptr>(world.pinned())) ==
          CUDA_ERROR_INVALID_VALUE);
    CUdeviceptr ordered = 0;
    REQUIRE(world.api.cuMemAllocAsync(&ordered, 64, nullptr) == CUDA_SUCCESS);
    REQUIRE(world.api.cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
    CHECK(world.api.cuIpcGetMemHandle(&handle, ordered) == CUDA_ERROR_INVALID_VALUE);
    REQUIRE(world.api.cuMemFree(ordered) == CUDA_SUCCESS);

    constexpr unsigned lazily = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS;
    CUdeviceptr opened = 0;
    CHECK(world.api.cuIpcOpenMemHandle(&opened, {}, lazily) == CUDA_ERROR_INVALID_HANDLE);
    handle = export_memory(world, memory);
    CHECK(world.api.cuIpcOpenMemHandle(&opened, handle, lazily) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(world.api.report().find("this process's own") != std::string::npos);
    CHECK(world.api.cuIpcCloseMemHandle(memory) == CUDA_ERROR_INVALID_VALUE);

    unsigned capable = 0;
    REQUIRE(world.api.cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                                            memory) == CUDA_SUCCESS);
    CHECK(capable == 1);
    const auto child = run_child("open memory of the parent", "lazy", given(handle));
    CHECK(child.output == "opened 0\n");
    handle.reserved[16] = static_cast<char>(handle.reserved[16] + 1);  // the name of another file
    CHECK(run_child("open memory of the parent", "lazy", given(handle)).output ==
          fmt::format("opened {}\n", +CUDA_ERROR_MAP_FAILED));
}

namespace {

/// An event and memory that two processes share. The memory is two flags with a float between them.
struct SharedWork {
    explicit SharedWork(World& a_world) : world(a_world), memory(world.device.floats(3, 0.0F)) {
        REQUIRE(world.api.cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING) ==
                CUDA_SUCCESS);
        CUipcEventHandle handle = {};
        REQUIRE(world.api.cuIpcGetEventHandle(&handle, event) == CUDA_SUCCESS);
        variables = given(export_memory(world, memory));
        variables.emplace_back("BASCULE_TEST_EVENT", digits_of(handle));
    }
    ~SharedWork() { world.api.cuEventDestroy(event); }
    SharedWork(const SharedWork&) = delete;
    SharedWork& operator=(const SharedWork&) = delete;

    CUdeviceptr word(std::size_t index) const { return memory + index * sizeof(float); }

    World& world;
    CUdeviceptr memory;
    CUevent event = nullptr;
    child_process::Variables variables;
};

}  // namespace

TEST_CASE("a stream of another process waits for what the event marks") {
    World world("threads");
    SharedWork shared(world);
    const CUstream stream = world.device.stream();
    CHECK(world.api.cuEventQuery(shared.event) == CUDA_SUCCESS);  // an empty set of work
    for (float expected : {2.0F, 6.0F}) {
        REQUIRE(world.api.cuMemsetD32(shared.word(0), 0, 1) == CUDA_SUCCESS);
        REQUIRE(world.api.cuStreamSynchronize(nullptr) == CUDA_SUCCESS);  // `stream` does not wait for it
        REQUIRE(world.device.launch("await", stream, shared.word(0)) == CUDA_SUCCESS);
        REQUIRE(world.device.launch("increment", stream, shared.word(1)) == CUDA_SUCCESS);
        REQUIRE(world.api.cuEventRecord(shared.event, stream) == CUDA_SUCCESS);
        CHECK(world.api.cuEventQuery(shared.event) == CUDA_ERROR_NOT_READY);
        const auto child = run_child("wait for the parent", "threads", shared.variables);
        CHECK(child.output == fmt::format("before {0}, stream {0}, after 0\n", +CUDA_ERROR_NOT_READY));
        CHECK(world.api.cuEventQuery(shared.event) == CUDA_SUCCESS);
        CHECK(world.device.read(shared.word(1)) == expected);
    }
}

TEST_CASE("streams and host wait for what another process recorded") {
    World world("threads");
    SharedWork shared(world);
    const CUstream stream = world.device.stream();
    auto child = std::async(std::launch::async,
                            [&] { return run_child("record for the parent", "threads", shared.variables); });
    while (world.device.read(shared.word(2)) == 0.0F) std::this_thread::yield();
    CHECK(world.api.cuEventQuery(shared.event) == CUDA_ERROR_NOT_READY);
    REQUIRE(world.api.cuStreamWaitEvent(stream, shared.event, 0) == CUDA_SUCCESS);
    REQUIRE(world.device.launch("twice", stream, shared.word(1)) == CUDA_SUCCESS);
    CHECK(world.api.cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
    REQUIRE(world.device.launch("increment", world.device.stream(), shared.word(0)) == CUDA_SUCCESS);
    CHECK(world.api.cuEventSynchronize(shared.event) == CUDA_SUCCESS);
    CHECK(world.api.cuEventQuery(shared.event) == CUDA_SUCCESS);
    CHECK(world.api.cuStreamSynchronize(stream) == CUDA_SUCCESS);
    CHECK(world.device.read(shared.word(1)) == 2.0F);
    CHECK(child.get().exit_code == 0);
}

TEST_CASE(
    "an event of several processes is one for all that it can be recorded and waited for, in any order") {
    under_each_policy([](World& world) {
        SharedWork shared(world);
        const CUstream a = world.device.stream(), b = world.device.stream();
        float* const value = world.pinned(1.0F);
        for (int i = 0; i < 1100; ++i) {  // more records than are remembered at once
            REQUIRE(world.api.cuEventRecord(shared.event, i % 2 == 0 ? a : b) == CUDA_SUCCESS);
            REQUIRE(world.api.cuStreamWaitEvent(i % 2 == 0 ? b : a, shared.event, 0) == CUDA_SUCCESS);
        }
        REQUIRE(world.increment(value, a) == CUDA_SUCCESS);
        REQUIRE(world.api.cuEventRecord(shared.event, a) == CUDA_SUCCESS);
        REQUIRE(world.api.cuStreamWaitEvent(b, shared.event, 0) == CUDA_SUCCESS);
        REQUIRE(world.twice(value, b) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamSynchronize(b) == CUDA_SUCCESS);
        CHECK(world.api.cuEventSynchronize(shared.event) == CUDA_SUCCESS);
        CHECK(*value == 4.0F);
    });
}

TEST_CASE("events that cannot be shared are refused") {
    World world("lazy");
    CUevent event = nullptr;
    CUipcEventHandle handle = {};
    CHECK(world.api.cuEventCreate(&event, CU_EVENT_INTERPROCESS) == CUDA_ERROR_INVALID_VALUE);
    CHECK(world.api.cuIpcGetEventHandle(&handle, world.device.event()) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(world.api.cuIpcOpenEventHandle(&event, handle) == CUDA_ERROR_INVALID_HANDLE);
    SharedWork shared(world);
    REQUIRE(world.api.cuIpcGetEventHandle(&handle, shared.event) == CUDA_SUCCESS);
    CHECK(world.api.cuIpcOpenEventHandle(&event, handle) == CUDA_ERROR_INVALID_CONTEXT);
    CUgraph graph = nullptr;
    CUgraphNode node = nullptr;
    REQUIRE(world.api.cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
    CHECK(world.api.cuGraphAddEventRecordNode(&node, graph, nullptr, 0, shared.event) ==
          CUDA_ERROR_NOT_SUPPORTED);
    REQUIRE(world.api.cuGraphDestroy(graph) == CUDA_SUCCESS);
}

}  // namespace client
