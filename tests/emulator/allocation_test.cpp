// Memory and faults through the driver's C ABI.
#include <array>

#include <doctest/doctest.h>

#include "client.hpp"

using client::Device;
using client::Library;

// --- faults

TEST_CASE("a fault is reported by later calls, not by the launch, and stays") {
    Library library;
    Device device(library);
    const CUdeviceptr x = device.floats(16, 0.0F);
    library.name_allocation(x, "made by the test");
    CHECK(device.launch("increment", nullptr, x, 1, 17) == CUDA_SUCCESS);  // one past the end
    CHECK(library.cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(library.cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(device.launch("increment", nullptr, x) == CUDA_ERROR_ILLEGAL_ADDRESS);
    float value = 0;
    CHECK(library.cuMemcpyDtoH(&value, x, sizeof value) == CUDA_ERROR_ILLEGAL_ADDRESS);

    const std::string report = library.report();
    CAPTURE(report);
    CHECK(report.find("kernel 'increment'") != std::string::npos);
    CHECK(report.find("block (0,0,0), thread (16,0,0)") != std::string::npos);
    CHECK(report.find("64-byte allocation made by the test") != std::string::npos);
}

TEST_CASE("a fault stays in its context") {
    Library library;
    Device device(library);
    CUcontext broken = nullptr;
    REQUIRE(library.cuCtxCreate(&broken, nullptr, 0, 0) == CUDA_SUCCESS);
    CUdeviceptr x = 0;
    library.cuMemAlloc(&x, 4);
    CHECK(device.launch("trap", nullptr, x) == CUDA_SUCCESS);
    CHECK(library.cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_INSTRUCTION);
    CHECK(library.cuCtxPopCurrent(nullptr) == CUDA_SUCCESS);
    CHECK(library.cuCtxSynchronize() == CUDA_SUCCESS);
    CHECK(library.cuCtxDestroy(broken) == CUDA_SUCCESS);
}

TEST_CASE("a reset primary context works again, with nothing of the old one") {
    Library library;
    CUcontext context = nullptr;
    library.cuDevicePrimaryCtxRetain(&context, 0);
    library.cuCtxSetCurrent(context);
    std::size_t before = 0;
    std::size_t total = 0;
    library.cuMemGetInfo(&before, &total);
    {
        Device device(library);
        device.launch("trap", nullptr, device.allocate(1 << 20));
        CHECK(library.cuCtxSynchronize() != CUDA_SUCCESS);
        CHECK(library.cuDevicePrimaryCtxReset(0) == CUDA_SUCCESS);
    }
    library.cuDevicePrimaryCtxRetain(&context, 0);
    library.cuCtxSetCurrent(context);
    std::size_t after = 0;
    CHECK(library.cuMemGetInfo(&after, &total) == CUDA_SUCCESS);
    CHECK(after == before);
    Device device(library);
    const CUdeviceptr x = device.floats(1, 1.0F);
    device.launch("increment", nullptr, x);
    CHECK(device.read(x) == 2.0F);
}

// --- memory

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

TEST_CASE("fills write elements of one, two and four bytes") {
    Device device;
    const CUdeviceptr x = device.allocate(8);
    std::array<unsigned char, 8> bytes{};
    const auto read = [&] { device.api.cuMemcpyDtoH(bytes.data(), x, bytes.size()); };
    CHECK(device.api.cuMemsetD8(x, 0x11, 8) == CUDA_SUCCESS);
    CHECK(device.api.cuMemsetD16Async(x, 0x2322, 2, nullptr) == CUDA_SUCCESS);
    read();
    CHECK(bytes == std::array<unsigned char, 8>{0x22, 0x23, 0x22, 0x23, 0x11, 0x11, 0x11, 0x11});
    CHECK(device.api.cuMemsetD32Async(x + 4, 0x04030201, 1, nullptr) == CUDA_SUCCESS);
    read();
    CHECK(bytes == std::array<unsigned char, 8>{0x22, 0x23, 0x22, 0x23, 1, 2, 3, 4});
    CHECK(device.api.cuMemsetD32Async(x + 2, 0, 1, nullptr) == CUDA_ERROR_INVALID_VALUE);
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

    int local = 0;  // of no device: the call succeeds and answers zeros
    const auto unknown = reinterpret_cast<CUdeviceptr>(&local);
    CHECK(device.api.cuPointerGetAttributes(3, which.data(), values.data(), unknown) == CUDA_SUCCESS);
    CHECK(type == 0);
    CHECK(device.api.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, unknown) ==
          CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("pinned memory is the same for host and kernels") {
    Device device;
    void* host = nullptr;
    REQUIRE(device.api.cuMemHostAlloc(&host, sizeof(float), 0) == CUDA_SUCCESS);
    *static_cast<float*>(host) = 1.0F;
    CHECK(device.launch("increment", nullptr, reinterpret_cast<CUdeviceptr>(host)) == CUDA_SUCCESS);
    CHECK(device.api.cuCtxSynchronize() == CUDA_SUCCESS);
    CHECK(*static_cast<float*>(host) == 2.0F);
    CHECK(device.api.cuMemFreeHost(host) == CUDA_SUCCESS);
}

TEST_CASE("host memory that was registered can be used by kernels") {
    Device device;
    alignas(4096) static std::array<float, 1024> host{};
    CHECK(device.api.cuMemHostRegister(host.data(), sizeof host, 0) == CUDA_SUCCESS);
    CHECK(device.api.cuMemHostRegister(host.data(), sizeof host, 0) ==
          CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    CHECK(device.launch("increment", nullptr, reinterpret_cast<CUdeviceptr>(host.data())) == CUDA_SUCCESS);
    CHECK(device.api.cuCtxSynchronize() == CUDA_SUCCESS);
    CHECK(host[0] == 1.0F);
    CHECK(device.api.cuMemHostUnregister(host.data()) == CUDA_SUCCESS);
    CHECK(device.api.cuMemHostUnregister(host.data()) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}
