// Stream-ordered allocation and memory pools as specified by the driver API's documentation.
#include <array>
#include <string>

#include "world.hpp"

using client::Library;
using client::under_each_policy;
using client::World;

namespace {

CUdeviceptr allocate_async(World& world, std::size_t bytes, CUstream stream) {
    CUdeviceptr address = 0;
    REQUIRE(world.api.cuMemAllocAsync(&address, bytes, stream) == CUDA_SUCCESS);
    return address;
}

CUmemoryPool make_pool(World& world, int device = 0, std::size_t most = 0) {
    CUmemPoolProps properties = {};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    properties.maxSize = most;
    CUmemoryPool pool = nullptr;
    REQUIRE(world.api.cuMemPoolCreate(&pool, &properties) == CUDA_SUCCESS);
    return pool;
}

cuuint64_t number_of(World& world, CUmemoryPool pool, CUmemPool_attribute which) {
    cuuint64_t value = 77;
    REQUIRE(world.api.cuMemPoolGetAttribute(pool, which, &value) == CUDA_SUCCESS);
    return value;
}

/// A library of its own, whose device a test may break.
struct Fragile {
    Library library;
    World world;
    explicit Fragile(const char* policy) : library({{"BASCULE_EMULATED_SCHEDULE", policy}}), world(library) {}
};

}  // namespace

// cuMemAllocAsync: "Basic stream ordering allows future work submitted into the same stream to use the allocation."
TEST_CASE("memory allocated in stream order is used, copied and freed in that order") {
    under_each_policy([](World& world) {
        const CUstream p = world.device.stream();
        float result = 0.0F;
        float* pinned = world.pinned();
        const float start = 4.0F;
        const CUdeviceptr x = allocate_async(world, 4, p);
        CHECK(world.api.cuMemcpyHtoDAsync(x, &start, 4, p) == CUDA_SUCCESS);
        CHECK(world.device.launch("increment", p, x) == CUDA_SUCCESS);
        CHECK(world.api.cuMemcpyDtoHAsync(pinned, x, 4, p) == CUDA_SUCCESS);
        CHECK(world.api.cuMemFreeAsync(x, p) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
        CHECK(*pinned == 5.0F);
        CHECK(world.api.cuMemcpyDtoH(&result, x, 4) == CUDA_ERROR_INVALID_VALUE);
        CHECK(world.api.cuMemFreeAsync(0, p) == CUDA_SUCCESS);
    });
}

// cuMemAllocAsync: other streams may use the memory if they are ordered after the allocation.
TEST_CASE("another stream uses stream-ordered memory after it has waited for it") {
    under_each_policy([](World& world) {
        const CUstream p = world.device.stream();
        const CUstream q = world.device.stream();
        const CUevent made = world.device.event();
        const CUevent used = world.device.event();
        float* result = world.pinned();
        const CUdeviceptr x = allocate_async(world, 4, p);
        world.api.cuEventRecord(made, p);
        world.api.cuStreamWaitEvent(q, made, 0);
        CHECK(world.api.cuMemsetD32Async(x, 0, 1, q) == CUDA_SUCCESS);
        world.device.launch("increment", q, x);
        world.api.cuMemcpyDtoHAsync(result, x, 4, q);
        world.api.cuEventRecord(used, q);
        world.api.cuStreamWaitEvent(p, used, 0);
        CHECK(world.api.cuMemFreeAsync(x, p) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
        CHECK(*result == 1.0F);
    });
}

// cuMemFreeAsync: "The allocation must not be accessed after stream execution reaches the free."
TEST_CASE("a kernel after the free in stream order is a fault that names the free") {
    for (const std::string& policy : client::policies) {
        CAPTURE(policy);
        Fragile fragile(policy.c_str());
        World& world = fragile.world;
        const CUstream p = world.device.stream();
        const CUdeviceptr x = allocate_async(world, 64, p);
        world.api.name_allocation(x, "scratch");
        CHECK(world.api.cuMemFreeAsync(x, p) == CUDA_SUCCESS);
        CHECK(world.device.launch("increment", p, x) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamSynchronize(p) == CUDA_ERROR_ILLEGAL_ADDRESS);
        const std::string report = world.api.report();
        CAPTURE(report);
        CHECK(report.find("inside a freed 64-byte allocation scratch") != std::string::npos);
        CHECK(report.find("cuMemFreeAsync") != std::string::npos);
    }
}

// cuMemFreeAsync: after the call has returned, "accessing the memory from any subsequent work" is undefined behavior.
// The emulated device refuses it.
TEST_CASE("a copy issued after the free is refused, under every policy alike") {
    under_each_policy([](World& world) {
        const CUstream p = world.device.stream();
        const CUstream q = world.device.stream();
        const CUdeviceptr x = allocate_async(world, 64, p);
        CHECK(world.api.cuMemFreeAsync(x, p) == CUDA_SUCCESS);
        CHECK(world.api.cuMemsetD8Async(x, 0, 64, q) == CUDA_ERROR_INVALID_VALUE);
        CHECK(world.api.report().find("cuMemFreeAsync") != std::string::npos);
        CHECK(world.api.cuMemFreeAsync(x, q) == CUDA_ERROR_INVALID_VALUE);
        CHECK(world.api.cuMemFree(x) == CUDA_ERROR_INVALID_VALUE);
        CUdeviceptr base = 0;
        CHECK(world.api.cuMemGetAddressRange(&base, nullptr, x) == CUDA_ERROR_NOT_FOUND);
        CHECK(world.api.cuCtxSynchronize() == CUDA_SUCCESS);
    });
}

TEST_CASE("memory whose free was issued is never found, whether the free has run or not") {
    Fragile fragile("threads");
    World& world = fragile.world;
    const CUstream p = world.device.stream();
    for (int k = 0; k < 300; ++k) {
        const CUdeviceptr x = allocate_async(world, 64, p);
        REQUIRE(world.api.cuMemFreeAsync(x, p) == CUDA_SUCCESS);
        for (int again = 0; again < 1000; ++again) {  // while the free runs and after it
            CUdeviceptr base = 0;
            REQUIRE(world.api.cuMemGetAddressRange(&base, nullptr, x) == CUDA_ERROR_NOT_FOUND);
        }
    }
    CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
}

TEST_CASE("use before the allocation, on a stream that nothing orders after it, is a fault that says so") {
    Fragile fragile("lazy");
    World& world = fragile.world;
    const CUstream p = world.device.stream();
    const CUstream q = world.device.stream();
    const CUdeviceptr x = allocate_async(world, 64, p);
    CHECK(world.device.launch("increment", q, x) == CUDA_SUCCESS);
    CHECK(world.api.cuStreamSynchronize(q) == CUDA_ERROR_ILLEGAL_ADDRESS);
    const std::string report = world.api.report();
    CAPTURE(report);
    CHECK(
        report.find("64-byte allocation, whose stream-ordered allocation (cuMemAllocAsync) nothing orders") !=
        std::string::npos);
}

TEST_CASE("a copy that runs when its memory is not there yet, or not any more, is a fault") {
    for (const bool frees : {false, true}) {
        CAPTURE(frees);
        Fragile fragile("lazy");
        World& world = fragile.world;
        const CUstream p = world.device.stream();
        const CUstream q = world.device.stream();
        const CUdeviceptr x = allocate_async(world, 64, p);
        if (frees) world.api.cuStreamSynchronize(p);
        CHECK(world.api.cuMemsetD8Async(x, 0, 64, q) == CUDA_SUCCESS);
        if (frees) {
            world.api.cuMemFreeAsync(x, p);
            world.api.cuStreamSynchronize(p);
        }
        CHECK(world.api.cuStreamSynchronize(q) == CUDA_ERROR_ILLEGAL_ADDRESS);
        CHECK(world.api.report().find(frees ? "cuMemFreeAsync" : "cuMemAllocAsync") != std::string::npos);
    }
}

// cuMemFree accepts memory of cuMemAllocAsync; cuMemFreeAsync accepts memory of cuMemAlloc.
TEST_CASE("both ways of freeing free both kinds of device memory") {
    under_each_policy([](World& world) {
        const CUstream p = world.device.stream();
        std::size_t before = 0;
        std::size_t after = 0;
        std::size_t total = 0;
        world.api.cuMemGetInfo(&before, &total);
        const CUdeviceptr x = allocate_async(world, 1 << 20, p);
        CUdeviceptr y = 0;
        REQUIRE(world.api.cuMemAlloc(&y, 1 << 20) == CUDA_SUCCESS);
        world.api.cuMemGetInfo(&after, &total);
        CHECK(before - after == 2 << 20);
        CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);  // cuMemFree does not wait for pool memory
        CHECK(world.api.cuMemFree(x) == CUDA_SUCCESS);
        CHECK(world.api.cuMemFreeAsync(y, p) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
        world.api.cuMemGetInfo(&after, &total);
        CHECK(after == before);
        CHECK(world.api.cuMemFreeAsync(x + 4, p) == CUDA_ERROR_INVALID_VALUE);
    });
}

TEST_CASE("frees that are pending make room for what would not fit otherwise") {
    for (const std::string& policy : client::policies) {
        CAPTURE(policy);
        Library library(
            {{"BASCULE_EMULATED_SCHEDULE", policy.c_str()}, {"BASCULE_EMULATED_MEMORY", "1048576"}});
        World world(library);
        const CUstream p = world.device.stream();
        for (int i = 0; i < 8; ++i) {
            const CUdeviceptr x = allocate_async(world, 700000, p);
            CHECK(world.api.cuMemFreeAsync(x, p) == CUDA_SUCCESS);
        }
        CUdeviceptr y = 0;
        CHECK(world.api.cuMemAlloc(&y, 700000) == CUDA_SUCCESS);
        CHECK(world.api.cuMemAllocAsync(&y, 700000, p) == CUDA_ERROR_OUT_OF_MEMORY);
    }
}

// cuDeviceGetDefaultMemPool, cuDeviceGetMemPool, cuDeviceSetMemPool, cuMemPoolDestroy.
TEST_CASE("a device has a default pool, and a current one that can be set and falls back") {
    World world("lazy", 2);
    CUmemoryPool initial = nullptr;
    CUmemoryPool current = nullptr;
    CHECK(world.api.cuDeviceGetDefaultMemPool(&initial, 0) == CUDA_SUCCESS);
    CHECK(world.api.cuDeviceGetMemPool(&current, 0) == CUDA_SUCCESS);
    CHECK(initial == current);
    CHECK(world.api.cuMemPoolDestroy(initial) == CUDA_ERROR_INVALID_VALUE);
    const CUmemoryPool mine = make_pool(world);
    CHECK(world.api.cuDeviceSetMemPool(1, mine) == CUDA_ERROR_INVALID_VALUE);  // it belongs to device 0
    CHECK(world.api.cuDeviceSetMemPool(0, mine) == CUDA_SUCCESS);
    world.api.cuDeviceGetMemPool(&current, 0);
    CHECK(current == mine);
    const CUdeviceptr x = allocate_async(world, 4096, nullptr);
    CHECK(number_of(world, mine, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 4096);
    CUmemoryPool of_pointer = nullptr;
    CHECK(world.api.cuPointerGetAttribute(&of_pointer, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, x) ==
          CUDA_SUCCESS);
    CHECK(of_pointer == mine);

    CHECK(world.api.cuMemPoolDestroy(mine) == CUDA_SUCCESS);
    CHECK(world.api.cuMemPoolDestroy(mine) == CUDA_ERROR_INVALID_VALUE);
    world.api.cuDeviceGetMemPool(&current, 0);
    CHECK(current == initial);
    // "released automatically once there are no more outstanding allocations"
    CHECK(world.api.cuMemsetD8Async(x, 1, 4096, nullptr) == CUDA_SUCCESS);
    CHECK(world.api.cuMemFreeAsync(x, nullptr) == CUDA_SUCCESS);
    CHECK(world.api.cuCtxSynchronize() == CUDA_SUCCESS);
}

// CUmemPool_attribute: the value of each, and which can be set; cuMemPoolTrimTo.
TEST_CASE("a pool counts what it gives out, and keeps what its threshold says") {
    under_each_policy([](World& world) {
        const CUstream p = world.device.stream();
        const CUmemoryPool pool = make_pool(world, 0, 1 << 20);
        const auto number = [&](CUmemPool_attribute which) { return number_of(world, pool, which); };
        std::array<CUdeviceptr, 2> x = {};
        for (auto& each : x) CHECK(world.api.cuMemAllocFromPoolAsync(&each, 1000, pool, p) == CUDA_SUCCESS);
        CHECK(number(CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 2000);
        CHECK(number(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 2000);
        CUdeviceptr more = 0;
        CHECK(world.api.cuMemAllocFromPoolAsync(&more, 1 << 20, pool, p) ==
              CUDA_ERROR_OUT_OF_MEMORY);  // maxSize
        world.api.cuMemFreeAsync(x[0], p);
        world.api.cuStreamSynchronize(p);
        CHECK(number(CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 1000);
        CHECK(number(CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 2000);

        cuuint64_t threshold = 500000;
        CHECK(world.api.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold) ==
              CUDA_SUCCESS);
        CHECK(number(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == threshold);
        CHECK(world.api.cuMemAllocFromPoolAsync(&more, 300000, pool, p) == CUDA_SUCCESS);
        world.api.cuMemFreeAsync(more, p);
        world.api.cuStreamSynchronize(p);
        CHECK(number(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 300000);
        CHECK(world.api.cuMemPoolTrimTo(pool, 0) == CUDA_SUCCESS);
        CHECK(number(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) < 300000);
        CHECK(number(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 1000);

        cuuint64_t zero = 0;
        cuuint64_t one = 1;
        CHECK(world.api.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &one) ==
              CUDA_ERROR_INVALID_VALUE);
        CHECK(world.api.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero) == CUDA_SUCCESS);
        CHECK(number(CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 0);
        CHECK(world.api.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &zero) ==
              CUDA_ERROR_INVALID_VALUE);
        int flag = 0;
        CHECK(world.api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &flag) ==
              CUDA_SUCCESS);
        CHECK(flag == 1);
        flag = 0;
        CHECK(world.api.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &flag) ==
              CUDA_SUCCESS);
        flag = 1;
        world.api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &flag);
        CHECK(flag == 0);
        CHECK(world.api.cuMemPoolGetAttribute(pool, static_cast<CUmemPool_attribute>(99), &flag) ==
              CUDA_ERROR_INVALID_VALUE);
        world.api.cuMemFreeAsync(x[1], p);
        world.api.cuMemPoolDestroy(pool);
        CHECK(world.api.cuMemAllocFromPoolAsync(&more, 4, pool, p) == CUDA_ERROR_INVALID_VALUE);
    });
}

TEST_CASE("pools of what there is not are refused with a reason") {
    World world("lazy");
    CUmemPoolProps properties = {};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemoryPool pool = nullptr;
    CHECK(world.api.cuMemPoolCreate(&pool, &properties) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(world.api.report().find("other processes") != std::string::npos);
    properties.location.type = CU_MEM_LOCATION_TYPE_HOST;  // "handleTypes must be 0" for such pools
    CHECK(world.api.cuMemPoolCreate(&pool, &properties) == CUDA_ERROR_INVALID_VALUE);
    properties.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
    properties.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    CHECK(world.api.cuMemPoolCreate(&pool, &properties) == CUDA_ERROR_INVALID_VALUE);
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = 5;
    CHECK(world.api.cuMemPoolCreate(&pool, &properties) == CUDA_ERROR_INVALID_VALUE);
}

// cuMemGetMemPool, cuMemPoolCreate: "CU_MEM_LOCATION_TYPE_HOST", "CU_MEM_ALLOCATION_TYPE_MANAGED"; "their default
// accessibility will be from the host CPU".
TEST_CASE("pools of the host's memory, pinned and managed, allocate in stream order too") {
    under_each_policy([](World& world) {
        for (const auto type : {CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_ALLOCATION_TYPE_MANAGED}) {
            CAPTURE(type);
            CUmemLocation host = {};
            host.type = CU_MEM_LOCATION_TYPE_HOST;
            CUmemoryPool current = nullptr, initial = nullptr;
            REQUIRE(world.api.cuMemGetMemPool(&current, &host, type) == CUDA_SUCCESS);
            CHECK(world.api.cuMemGetDefaultMemPool(&initial, &host, type) == CUDA_SUCCESS);
            CHECK(current == initial);
            CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
            CHECK(world.api.cuMemPoolGetAccess(&flags, current, &host) == CUDA_SUCCESS);
            CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
            const CUstream p = world.device.stream();
            CUdeviceptr x = 0;
            REQUIRE(world.api.cuMemAllocFromPoolAsync(&x, 4, current, p) == CUDA_SUCCESS);
            CHECK(world.api.cuMemsetD32Async(x, 0x40000000, 1, p) == CUDA_SUCCESS);
            CHECK(world.device.launch("increment", p, x) == CUDA_SUCCESS);
            CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
            CHECK(*reinterpret_cast<const float*>(x) == 3.0F);
            CUmemorytype kind{};
            CHECK(world.api.cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, x) ==
                  CUDA_SUCCESS);
            CHECK(kind ==
                  (type == CU_MEM_ALLOCATION_TYPE_PINNED ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE));
            CHECK(world.api.cuMemFreeAsync(x, p) == CUDA_SUCCESS);
            CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
            CHECK(world.api.cuMemFreeAsync(x, p) == CUDA_ERROR_INVALID_VALUE);
            CHECK(number_of(world, current, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
        }
    });
}

// cuMemSetMemPool: "the location and allocation type specified must match those of the pool".
TEST_CASE("a location's current pool is set, and is its default one again when that is destroyed") {
    World world("lazy");
    CUmemLocation location = {};
    location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    const auto current = [&] {
        CUmemoryPool pool = nullptr;
        CHECK(world.api.cuMemGetMemPool(&pool, &location, CU_MEM_ALLOCATION_TYPE_PINNED) == CUDA_SUCCESS);
        return pool;
    };
    const CUmemoryPool initial = current(), mine = make_pool(world);
    CHECK(world.api.cuMemSetMemPool(&location, CU_MEM_ALLOCATION_TYPE_PINNED, mine) == CUDA_SUCCESS);
    CHECK(current() == mine);
    CUmemoryPool of_device = nullptr;
    CHECK(world.api.cuDeviceGetMemPool(&of_device, 0) == CUDA_SUCCESS);
    CHECK(of_device == mine);
    CHECK(world.api.cuMemSetMemPool(&location, CU_MEM_ALLOCATION_TYPE_MANAGED, mine) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(world.api.cuMemPoolDestroy(mine) == CUDA_SUCCESS);
    CHECK(current() == initial);
    location.id = 7;
    CHECK(world.api.cuMemGetMemPool(&of_device, &location, CU_MEM_ALLOCATION_TYPE_PINNED) ==
          CUDA_ERROR_INVALID_VALUE);
    location = {};
    CHECK(world.api.cuMemGetMemPool(&of_device, &location, CU_MEM_ALLOCATION_TYPE_PINNED) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(world.api.cuMemGetMemPool(&of_device, &location, CU_MEM_ALLOCATION_TYPE_MANAGED) == CUDA_SUCCESS);
}

// Unlike cuMemAlloc's, cuMemAllocAsync's documentation has no error for a size of 0.
TEST_CASE("no bytes allocated in stream order are no memory, which may be freed") {
    World world("lazy");
    CUdeviceptr x = 77;
    CHECK(world.api.cuMemAllocAsync(&x, 0, nullptr) == CUDA_SUCCESS);
    CHECK(x == 0);
    CHECK(world.api.cuMemFreeAsync(x, nullptr) == CUDA_SUCCESS);
    CHECK(world.api.cuMemAlloc(&x, 0) == CUDA_ERROR_INVALID_VALUE);
}
