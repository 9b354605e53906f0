// Tests memory through the driver's C ABI.
#include <array>
#include <cstdint>
#include <thread>
#include <utility>

#include <doctest/doctest.h>

#include "client.hpp"

using client::Device;
using client::Library;

TEST_CASE("memory ends where the device's does") {
    Library library({{"BASCULE_EMULATED_MEMORY", "1048576"}});
    Device device(library);
    CUdeviceptr address = 0;
    CHECK(library.cuMemAlloc(&address, 2 << 20) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(library.cuMemAlloc(&address, 1 << 18) == CUDA_SUCCESS);
    std::size_t free = 0;
    std::size_t total = 0;
    library.cuMemGetInfo(&free, &total);
    CHECK(total == 1 << 20);
    CHECK(free <= total - (1 << 18));
    CHECK(library.cuMemAlloc(&address, 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("freeing twice is an error, freeing null is not") {
    Device device;
    CUdeviceptr address = 0;
    device.api.cuMemAlloc(&address, 64);
    CHECK(device.api.cuMemFree(address + 16) == CUDA_ERROR_INVALID_VALUE);
    CHECK(device.api.cuMemFree(address) == CUDA_SUCCESS);
    CHECK(device.api.cuMemFree(address) == CUDA_ERROR_INVALID_VALUE);
    CHECK(device.api.cuMemFree(0) == CUDA_SUCCESS);
}

TEST_CASE("pitched memory that no size can express is out of memory") {
    Device device;
    CUdeviceptr address = 0;
    std::size_t pitch = 7;
    for (const auto& [width, height] : std::initializer_list<std::pair<std::size_t, std::size_t>>{
             {SIZE_MAX - 1, 1}, {std::size_t{1} << 33, std::size_t{1} << 31}})
        CHECK(device.api.cuMemAllocPitch(&address, &pitch, width, height, 4) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(pitch == 7);
    CHECK(device.api.cuMemAllocPitch(&address, &pitch, 100, 3, 4) == CUDA_SUCCESS);
    CHECK(pitch == 512);
}

TEST_CASE("memory of a pool is not pinned memory") {
    Device device;
    CUdeviceptr x = 0;
    REQUIRE(device.api.cuMemAllocAsync(&x, 64, nullptr) == CUDA_SUCCESS);
    CHECK(device.api.cuMemFreeHost(reinterpret_cast<void*>(x)) == CUDA_ERROR_INVALID_VALUE);
    CHECK(device.api.cuMemFree(x) == CUDA_SUCCESS);
}

TEST_CASE("a copy past the end of an allocation is refused whole") {
    Device device;
    const CUdeviceptr x = device.floats(4, 1.0F);
    std::array<float, 5> values{};
    CHECK(device.api.cuMemcpyDtoH(values.data(), x, sizeof values) == CUDA_ERROR_INVALID_VALUE);
    CHECK(device.api.cuMemcpyHtoD(x, values.data(), sizeof values) == CUDA_ERROR_INVALID_VALUE);
    CHECK(device.read(x) == 1.0F);
}

TEST_CASE("a copy without a direction takes it from the pointers") {
    Device device;
    const CUdeviceptr x = device.floats(1, 6.0F);
    const CUdeviceptr y = device.floats(1, 0.0F);
    float value = 0;
    CHECK(device.api.cuMemcpy(y, x, sizeof value) == CUDA_SUCCESS);
    CHECK(device.api.cuMemcpy(reinterpret_cast<CUdeviceptr>(&value), y, sizeof value) == CUDA_SUCCESS);
    CHECK(value == 6.0F);
    value = 7.0F;
    CHECK(device.api.cuMemcpy(x, reinterpret_cast<CUdeviceptr>(&value), sizeof value) == CUDA_SUCCESS);
    CHECK(device.read(x) == 7.0F);
}

TEST_CASE("a pointer tells where it points") {
    Device device;
    const CUdeviceptr x = device.allocate(64);
    std::array<CUpointer_attribute, 3> which{CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                             CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                             CU_POINTER_ATTRIBUTE_RANGE_START_ADDR};
    unsigned type = 9;
    int ordinal = 9;
    CUdeviceptr start = 0;
    std::array<void*, 3> values{&type, &ordinal, &start};
    CHECK(device.api.cuPointerGetAttributes(3, which.data(), values.data(), x + 60) == CUDA_SUCCESS);
    CHECK(type == CU_MEMORYTYPE_DEVICE);
    CHECK(ordinal == 0);
    CHECK(start == x);

    int local = 0;  // memory of no device: cuPointerGetAttributes returns zeros
    const auto unknown = reinterpret_cast<CUdeviceptr>(&local);
    CHECK(device.api.cuPointerGetAttributes(3, which.data(), values.data(), unknown) == CUDA_SUCCESS);
    CHECK(type == 0);
    CHECK(device.api.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, unknown) ==
          CUDA_ERROR_INVALID_VALUE);
}

// Addresses are unique in the process: freeing finds the context of the memory, whatever context is current.
TEST_CASE("memory is freed in a thread without a context") {
    Device device;
    CUdeviceptr x = 0;
    void* host = nullptr;
    REQUIRE(device.api.cuMemAlloc(&x, 64) == CUDA_SUCCESS);
    REQUIRE(device.api.cuMemHostAlloc(&host, 64, 0) == CUDA_SUCCESS);
    std::thread other([&] {
        CUcontext current = nullptr;
        CHECK(device.api.cuCtxGetCurrent(&current) == CUDA_SUCCESS);
        CHECK(current == nullptr);
        CHECK(device.api.cuMemFree(x) == CUDA_SUCCESS);
        CHECK(device.api.cuMemFree(x) == CUDA_ERROR_INVALID_CONTEXT);
        CHECK(device.api.cuMemFreeHost(host) == CUDA_SUCCESS);
    });
    other.join();
    CHECK(device.api.cuMemFree(x) == CUDA_ERROR_INVALID_VALUE);
}
