// Memory that host and device share (pinned, mapped, registered, managed), and device memory, which they do not.
#include <array>
#include <csignal>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include "world.hpp"

using client::under_each_policy;
using client::World;

namespace {

/// Returns the signal that ends a process that reads `address`, or 0 if it may read it.
int signal_of_reading(CUdeviceptr address) {
    const pid_t child = fork();
    if (child == 0) {
        for (const int signal : {SIGSEGV, SIGBUS}) std::signal(signal, SIG_DFL);
        static_cast<void>(*reinterpret_cast<volatile char*>(address));
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

CUmemLocation on_device(int ordinal) {
    CUmemLocation location = {};
    location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = ordinal;
    return location;
}

}  // namespace

// cuMemAlloc: device memory has no address on the host, however it is allocated.
TEST_CASE("the host crashes on device memory of every kind, and not on what it shares") {
    World world("lazy");
    CUdeviceptr pitched = 0;
    CUdeviceptr in_order = 0;
    CUdeviceptr managed = 0;
    world.api.cuMemAllocAsync(&in_order, 64, nullptr);
    world.api.cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL);
    world.api.cuCtxSynchronize();
    pitched = world.device.allocate(512);
    for (const CUdeviceptr address : {world.device.allocate(64), pitched + 511, in_order}) {
        CHECK(signal_of_reading(address) == SIGSEGV);
    }
    CHECK(signal_of_reading(managed) == 0);
    CHECK(signal_of_reading(reinterpret_cast<CUdeviceptr>(world.pinned())) == 0);
}

// As documented for cuMemHostAlloc, its flags, cuMemAllocHost and cuMemHostGetDevicePointer: with unified addressing,
// the device pointer equals the host pointer.
TEST_CASE("pinned memory of all flags is the kernels' too, at the address that its device pointer says") {
    under_each_policy([](World& world) {
        for (const unsigned flags :
             {0U, static_cast<unsigned>(CU_MEMHOSTALLOC_PORTABLE),
              static_cast<unsigned>(CU_MEMHOSTALLOC_DEVICEMAP),
              static_cast<unsigned>(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP |
                                    CU_MEMHOSTALLOC_WRITECOMBINED)}) {
            void* host = nullptr;
            CUdeviceptr device = 0;
            REQUIRE(world.api.cuMemHostAlloc(&host, 8, flags) == CUDA_SUCCESS);
            CHECK(world.api.cuMemHostGetDevicePointer(&device, host, 0) == CUDA_SUCCESS);
            auto* value = static_cast<float*>(host);
            *value = 1.0F;
            CHECK(world.device.launch("increment", nullptr, device) == CUDA_SUCCESS);
            CHECK(world.api.cuCtxSynchronize() == CUDA_SUCCESS);
            CHECK(*value == 2.0F);
            CHECK(world.api.cuMemHostGetDevicePointer(&device, host, 1) == CUDA_ERROR_INVALID_VALUE);
            CHECK(world.api.cuMemFreeHost(host) == CUDA_SUCCESS);
            CHECK(world.api.cuMemHostGetDevicePointer(&device, host, 0) == CUDA_ERROR_INVALID_VALUE);
        }
        void* host = nullptr;
        CHECK(world.api.cuMemHostAlloc(&host, 8, 8) == CUDA_ERROR_INVALID_VALUE);
        CHECK(world.api.cuMemAllocHost(&host, 8) == CUDA_SUCCESS);
        unsigned type = 0;
        CHECK(world.api.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                              reinterpret_cast<CUdeviceptr>(host)) == CUDA_SUCCESS);
        CHECK(type == CU_MEMORYTYPE_HOST);
        CHECK(world.api.cuMemFreeHost(host) == CUDA_SUCCESS);
    });
}

// cuMemFreeHost, cuMemHostUnregister: nothing uses the memory any more when they return.
TEST_CASE("freeing and unregistering host memory wait for what uses it") {
    under_each_policy([](World& world) {
        const CUstream p = world.device.stream();
        const CUdeviceptr x = world.device.floats(1, 0.0F);
        float* pinned = world.pinned(3.0F);
        world.api.cuMemcpyHtoDAsync(x, pinned, 4, p);
        CHECK(world.api.cuMemFreeHost(pinned) == CUDA_SUCCESS);
        CHECK(world.device.read(x) == 3.0F);

        alignas(4096) std::array<float, 1024> mine{};
        CHECK(world.api.cuMemHostRegister(mine.data(), sizeof mine, CU_MEMHOSTREGISTER_PORTABLE) ==
              CUDA_SUCCESS);
        CHECK(world.api.cuMemHostRegister(mine.data(), sizeof mine, 0) ==
              CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
        world.increment(mine.data() + 1023, p);
        CHECK(world.api.cuMemHostUnregister(mine.data()) == CUDA_SUCCESS);
        CHECK(world.api.cuMemHostUnregister(mine.data()) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
        CHECK(mine[1023] == 1.0F);
        CHECK(world.api.cuMemHostRegister(mine.data(), sizeof mine, 64) == CUDA_ERROR_INVALID_VALUE);
    });
}

TEST_CASE("a kernel may use registered memory to its last byte, and not after it is unregistered") {
    for (const bool unregistered : {false, true}) {
        CAPTURE(unregistered);
        client::Library library;
        World world(library);
        alignas(4096) static std::array<float, 1024> mine{};
        REQUIRE(library.cuMemHostRegister(mine.data(), sizeof mine, 0) == CUDA_SUCCESS);
        if (unregistered) REQUIRE(library.cuMemHostUnregister(mine.data()) == CUDA_SUCCESS);
        const auto at = reinterpret_cast<CUdeviceptr>(mine.data());
        CHECK(world.device.launch("increment", nullptr, at, 1, unregistered ? 1 : 1024) == CUDA_SUCCESS);
        CHECK(library.cuCtxSynchronize() == (unregistered ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS));
        if (!unregistered) library.cuMemHostUnregister(mine.data());
    }
}

// cuMemAllocManaged: one pointer for host and devices; flags are GLOBAL or HOST.
TEST_CASE("managed memory is used by host and kernels in turns") {
    under_each_policy([](World& world) {
        for (const unsigned flags : {CU_MEM_ATTACH_GLOBAL, CU_MEM_ATTACH_HOST}) {
            CUdeviceptr address = 0;
            REQUIRE(world.api.cuMemAllocManaged(&address, 4096, flags) == CUDA_SUCCESS);
            auto* values = reinterpret_cast<float*>(address);
            for (int i = 0; i < 1024; ++i) values[i] = static_cast<float>(i);
            CHECK(world.device.launch("increment", nullptr, address, 4, 256) == CUDA_SUCCESS);
            CHECK(world.api.cuCtxSynchronize() == CUDA_SUCCESS);
            CHECK(values[0] == 1.0F);
            CHECK(values[1023] == 1024.0F);
            unsigned managed = 0;
            world.api.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address);
            CHECK(managed == 1);
            CHECK(world.api.cuMemFree(address) == CUDA_SUCCESS);
        }
        CUdeviceptr address = 0;
        CHECK(world.api.cuMemAllocManaged(&address, 4, CU_MEM_ATTACH_SINGLE) == CUDA_ERROR_INVALID_VALUE);
        CHECK(world.api.cuMemAllocManaged(&address, 4, 0) == CUDA_ERROR_INVALID_VALUE);
        CHECK(world.api.cuMemAllocManaged(&address, 0, CU_MEM_ATTACH_GLOBAL) == CUDA_ERROR_INVALID_VALUE);
    });
}

// cuMemPrefetchAsync, cuMemAdvise, cuStreamAttachMemAsync accept managed memory, and only existing locations.
TEST_CASE("hints about managed memory are checked") {
    World world("lazy");
    const CUstream p = world.device.stream();
    CUdeviceptr managed = 0;
    REQUIRE(world.api.cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
    const CUdeviceptr plain = world.device.allocate(4096);
    CUmemLocation host = {};
    host.type = CU_MEM_LOCATION_TYPE_HOST;
    const auto& api = world.api;
    CHECK(api.cuMemPrefetchAsync(managed, 4096, on_device(0), 0, p) == CUDA_SUCCESS);
    CHECK(api.cuMemPrefetchAsync(managed + 8, 16, host, 0, p) == CUDA_SUCCESS);
    CHECK(api.cuMemPrefetchAsync(managed, 4097, on_device(0), 0, p) == CUDA_ERROR_INVALID_VALUE);
    CHECK(api.cuMemPrefetchAsync(plain, 4096, on_device(0), 0, p) == CUDA_ERROR_INVALID_VALUE);
    CHECK(api.cuMemPrefetchAsync(managed, 4096, on_device(3), 0, p) == CUDA_ERROR_INVALID_DEVICE);
    CHECK(api.cuMemAdvise(managed, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, {}) == CUDA_SUCCESS);
    CHECK(api.cuMemAdvise(managed, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, on_device(0)) == CUDA_SUCCESS);
    CHECK(api.cuMemAdvise(managed, 4096, CU_MEM_ADVISE_SET_ACCESSED_BY, on_device(9)) ==
          CUDA_ERROR_INVALID_DEVICE);
    CHECK(api.cuMemAdvise(managed, 4096, static_cast<CUmem_advise>(99), host) == CUDA_ERROR_INVALID_VALUE);
    CHECK(api.cuMemAdvise(plain, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, host) == CUDA_ERROR_INVALID_VALUE);
    CHECK(api.cuStreamAttachMemAsync(p, managed, 0, CU_MEM_ATTACH_SINGLE) == CUDA_SUCCESS);
    CHECK(api.cuStreamAttachMemAsync(p, managed, 4096, CU_MEM_ATTACH_HOST) == CUDA_SUCCESS);
    CHECK(api.cuStreamAttachMemAsync(p, managed, 100, CU_MEM_ATTACH_HOST) == CUDA_ERROR_INVALID_VALUE);
    CHECK(api.cuStreamAttachMemAsync(nullptr, managed, 0, CU_MEM_ATTACH_SINGLE) == CUDA_ERROR_INVALID_VALUE);
    CHECK(api.cuStreamAttachMemAsync(p, plain, 0, CU_MEM_ATTACH_GLOBAL) == CUDA_ERROR_INVALID_VALUE);
    // Clients from before CUDA 12.2 pass a device's number.
    void* older = nullptr;
    CUdriverProcAddressQueryResult found{};
    REQUIRE(api.get_proc_address("cuMemPrefetchAsync", &older, 12000, 0, &found) == CUDA_SUCCESS);
    const auto prefetch = reinterpret_cast<PFN_cuMemPrefetchAsync_v8000>(older);
    CHECK(prefetch(managed, 4096, CU_DEVICE_CPU, p) == CUDA_SUCCESS);
    CHECK(prefetch(managed, 4096, 7, p) == CUDA_ERROR_INVALID_DEVICE);
}

// cuMemRangeGetAttribute: what cuMemAdvise and prefetches have set, if "all pages in the given memory range" have it.
TEST_CASE("what was said of managed memory is asked for page by page") {
    constexpr std::size_t page = 4096;
    World world("lazy");
    const auto& api = world.api;
    const CUstream p = world.device.stream();
    CUdeviceptr x = 0;
    REQUIRE(api.cuMemAllocManaged(&x, 3 * page, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
    const auto attribute = [&](CUmem_range_attribute which, CUdeviceptr from, std::size_t bytes) {
        int value = 77;
        CHECK(api.cuMemRangeGetAttribute(&value, sizeof value, which, from, bytes) == CUDA_SUCCESS);
        return value;
    };
    const auto of_all = [&](CUmem_range_attribute which) { return attribute(which, x, 3 * page); };
    const auto of_second = [&](CUmem_range_attribute which) { return attribute(which, x + page, page); };
    CUmemLocation host = {}, node = {};
    host.type = CU_MEM_LOCATION_TYPE_HOST;
    node.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;

    CHECK(of_all(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 0);
    CHECK(api.cuMemAdvise(x + page + 8, 16, CU_MEM_ADVISE_SET_READ_MOSTLY, {}) == CUDA_SUCCESS);
    CHECK(of_second(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 1);
    CHECK(of_all(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 0);
    CHECK(api.cuMemAdvise(x, 3 * page, CU_MEM_ADVISE_SET_READ_MOSTLY, {}) == CUDA_SUCCESS);
    CHECK(of_all(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 1);
    CHECK(api.cuMemAdvise(x, 1, CU_MEM_ADVISE_UNSET_READ_MOSTLY, {}) == CUDA_SUCCESS);
    CHECK(of_all(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 0);
    CHECK(of_second(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 1);

    CHECK(of_all(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) == CU_DEVICE_INVALID);
    CHECK(of_all(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE) == CU_MEM_LOCATION_TYPE_INVALID);
    const auto prefer = CU_MEM_ADVISE_SET_PREFERRED_LOCATION;
    CHECK(api.cuMemAdvise(x, 3 * page, prefer, on_device(0)) == CUDA_SUCCESS);
    CHECK(of_all(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) == 0);
    CHECK(of_all(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE) == CU_MEM_LOCATION_TYPE_DEVICE);
    CHECK(of_all(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID) == 0);
    CHECK(api.cuMemAdvise(x + page, page, prefer, node) == CUDA_SUCCESS);
    CHECK(of_all(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) == CU_DEVICE_INVALID);
    CHECK(of_second(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) == CU_DEVICE_CPU);
    CHECK(of_second(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE) == CU_MEM_LOCATION_TYPE_HOST_NUMA);
    CHECK(api.cuMemAdvise(x, 3 * page, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, {}) == CUDA_SUCCESS);
    CHECK(of_second(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) == CU_DEVICE_INVALID);

    CHECK(api.cuMemPrefetchAsync(x, page, host, 0, p) == CUDA_SUCCESS);
    CHECK(of_all(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION) == CU_DEVICE_INVALID);
    CUdeviceptr addresses[] = {x + page, x + 2 * page};
    std::size_t bytes[] = {page, page}, first_of[] = {0, 1};
    CUmemLocation places[] = {on_device(0), host};
    CHECK(api.cuMemPrefetchBatchAsync(addresses, bytes, 2, places, first_of, 2, 0, p) == CUDA_SUCCESS);
    CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, x, page) == CU_DEVICE_CPU);
    CHECK(of_second(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION) == 0);
    CHECK(of_second(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE) == CU_MEM_LOCATION_TYPE_DEVICE);
    CHECK(of_second(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID) == 0);
    CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, x + 2 * page, page) == CU_DEVICE_CPU);

    // The settings end with the allocation: the next one gets the same pages.
    CHECK(api.cuMemFree(x) == CUDA_SUCCESS);
    REQUIRE(api.cuMemAllocManaged(&x, 3 * page, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
    CHECK(of_second(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 0);
    CHECK(api.cuMemFree(x) == CUDA_SUCCESS);
}

// CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: "if dataSize is 12 ... and only device 0 has the advice set, then the result
// returned will be { 0, CU_DEVICE_INVALID, CU_DEVICE_INVALID }".
TEST_CASE("managed memory tells which processors are said to access all of it") {
    World world("lazy");
    const auto& api = world.api;
    CUdeviceptr x = 0;
    REQUIRE(api.cuMemAllocManaged(&x, 8192, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
    using Three = std::array<int, 3>;
    const auto accessing = [&] {
        Three found = {77, 77, 77};
        CHECK(api.cuMemRangeGetAttribute(found.data(), sizeof found, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, x,
                                         8192) == CUDA_SUCCESS);
        return found;
    };
    CUmemLocation host = {}, node = {};
    host.type = CU_MEM_LOCATION_TYPE_HOST;
    node.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    constexpr int none = CU_DEVICE_INVALID, cpu = CU_DEVICE_CPU;
    CHECK(accessing() == Three{none, none, none});
    CHECK(api.cuMemAdvise(x, 4096, CU_MEM_ADVISE_SET_ACCESSED_BY, on_device(0)) == CUDA_SUCCESS);
    CHECK(accessing() == Three{none, none, none});
    CHECK(api.cuMemAdvise(x, 8192, CU_MEM_ADVISE_SET_ACCESSED_BY, on_device(0)) == CUDA_SUCCESS);
    CHECK(accessing() == Three{0, none, none});
    CHECK(api.cuMemAdvise(x, 8192, CU_MEM_ADVISE_SET_ACCESSED_BY, host) == CUDA_SUCCESS);
    CHECK(accessing() == Three{cpu, 0, none});
    CHECK(api.cuMemAdvise(x, 8192, CU_MEM_ADVISE_SET_ACCESSED_BY, node) == CUDA_ERROR_INVALID_VALUE);
    CHECK(api.cuMemAdvise(x, 8192, CU_MEM_ADVISE_UNSET_ACCESSED_BY, on_device(0)) == CUDA_SUCCESS);
    CHECK(accessing() == Three{cpu, none, none});

    // Several attributes at once, and invalid queries.
    int read_mostly = 77, by[2] = {};
    void* data[] = {&read_mostly, by};
    std::size_t sizes[] = {4, 8};
    CUmem_range_attribute which[] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY};
    CHECK(api.cuMemRangeGetAttributes(data, sizes, which, 2, x, 8192) == CUDA_SUCCESS);
    CHECK(read_mostly == 0);
    CHECK(by[0] == cpu);
    CHECK(by[1] == none);
    sizes[0] = 8;
    CHECK(api.cuMemRangeGetAttributes(data, sizes, which, 2, x, 8192) == CUDA_ERROR_INVALID_VALUE);
    const auto ask = [&](CUmem_range_attribute attribute, std::size_t size, CUdeviceptr from,
                         std::size_t range) {
        return api.cuMemRangeGetAttribute(by, size, attribute, from, range);
    };
    CHECK(ask(CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, 6, x, 8192) == CUDA_ERROR_INVALID_VALUE);
    CHECK(ask(static_cast<CUmem_range_attribute>(99), 4, x, 8192) == CUDA_ERROR_INVALID_VALUE);
    CHECK(ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 4, x, 8193) == CUDA_ERROR_INVALID_VALUE);
    CHECK(ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 4, world.device.allocate(4), 4) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(api.cuMemFree(x) == CUDA_SUCCESS);
}
