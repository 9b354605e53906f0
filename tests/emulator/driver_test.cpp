// How a client finds the driver's functions, devices and contexts. The tests follow the CUDA driver API's documentation
// unless a comment says otherwise.
#include <array>
#include <new>
#include <stdexcept>
#include <string>

#include <doctest/doctest.h>

#include "child.hpp"
#include "client.hpp"
#include "driver/exported.hpp"
#include "driver/listed_functions.hpp"

using client::Device;
using client::Library;

// Replaces the emulated device's own function, which would also write a report.
CUresult emulated::driver::out_of_memory(const std::string&) noexcept { return CUDA_ERROR_OUT_OF_MEMORY; }

namespace {

Library& shared() {
    static Device& device = *new Device;
    return device.api;
}

CUdriverProcAddressQueryResult resolve(const char* name, int version, void** function,
                                       cuuint64_t flags = CU_GET_PROC_ADDRESS_DEFAULT) {
    CUdriverProcAddressQueryResult result{};
    *function = nullptr;
    shared().get_proc_address(name, function, version, flags, &result);
    return result;
}

}  // namespace

TEST_CASE("a request at or above a function's version finds it") {
    void* at = nullptr;
    void* above = nullptr;
    CHECK(resolve("cuMemAlloc", 3020, &at) == CU_GET_PROC_ADDRESS_SUCCESS);
    CHECK(resolve("cuMemAlloc", 13000, &above) == CU_GET_PROC_ADDRESS_SUCCESS);
    CHECK(at == above);
    CHECK(at == shared().symbol("cuMemAlloc_v2"));
}

TEST_CASE("a request above the driver's own version gets the newest") {
    void* function = nullptr;
    CHECK(resolve("cuLaunchKernelEx", 99000, &function) == CU_GET_PROC_ADDRESS_SUCCESS);
    CHECK(function == reinterpret_cast<void*>(shared().cuLaunchKernelEx));
}

TEST_CASE("a request below the first version gets the oldest, as a client in use needs") {
    void* function = nullptr;
    CHECK(resolve("cuFuncSetAttribute", 2000, &function) == CU_GET_PROC_ADDRESS_SUCCESS);
    CHECK(function != nullptr);
}

TEST_CASE("of several versions the highest that is not above the request is taken") {
    void* old = nullptr;
    void* current = nullptr;
    resolve("cuCtxCreate", 3020, &old);
    resolve("cuCtxCreate", 12050, &current);
    CHECK(old == shared().symbol("cuCtxCreate_v2"));
    CHECK(current == shared().symbol("cuCtxCreate_v4"));
}

TEST_CASE("every listed function is found") {
    const auto check = [](const auto& names) {
        for (const std::string_view name : names) {
            CAPTURE(name);
            void* function = nullptr;
#if CUDA_VERSION < 13020
            if (name == "cuKernelGetParamCount") continue;
#endif
            CHECK(resolve(std::string(name).c_str(), 99000, &function) == CU_GET_PROC_ADDRESS_SUCCESS);
        }
    };
    check(emulated::driver::functions_of_bascule);
    check(emulated::driver::functions_for_other_clients);
}

TEST_CASE("an unknown name is not found") {
    void* function = nullptr;
    CHECK(resolve("cuMakeCoffee", 13000, &function) == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    CHECK(function == nullptr);
    CHECK(resolve("", 13000, &function) == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    CHECK(function == nullptr);
}

TEST_CASE("the per-thread flag gives functions for which NULL is the thread's own stream") {
    Device device;
    void* function = nullptr;
    resolve("cuStreamGetCtx", 13000, &function, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    CHECK(function != reinterpret_cast<void*>(device.api.cuStreamGetCtx));
    // A function without a stream has no variants: the same function is returned.
    resolve("cuMemAlloc", 13000, &function, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    CHECK(function == reinterpret_cast<void*>(device.api.cuMemAlloc));
}

TEST_CASE("the resolver of drivers before CUDA 12 takes no result") {
    auto* old = reinterpret_cast<PFN_cuGetProcAddress_v11030>(shared().symbol("cuGetProcAddress"));
    const bool exported = old != nullptr;
    REQUIRE(exported);
    void* function = nullptr;
    CHECK(old("cuMemFree", &function, 11030, CU_GET_PROC_ADDRESS_DEFAULT) == CUDA_SUCCESS);
    CHECK(function == reinterpret_cast<void*>(shared().cuMemFree));
}

TEST_CASE("every symbol that a client may link is exported under its plain name too") {
    for (const char* name : {"cuMemAlloc", "cuMemFree", "cuMemcpyHtoD", "cuMemcpyDtoHAsync", "cuCtxDestroy",
                             "cuStreamDestroy", "cuEventDestroy", "cuModuleGetGlobal", "cuMemsetD8"}) {
        CAPTURE(name);
        CHECK(shared().symbol(name) != nullptr);
    }
}

// PyCUDA is linked to some of these functions, and cannot be imported if one that it needs is missing.
TEST_CASE("what is not here is exported and refused, and not found by those who look it up") {
    const Device device(shared());
    for (const char* name :
         {"cuTexRefCreate", "cuTexRefSetAddress2D_v3", "cuModuleGetTexRef", "cuModuleGetSurfRef",
          "cuParamSetTexRef", "cuMemPoolExportPointer", "cuMemPoolImportPointer", "cuStreamBatchMemOp",
          "cuStreamWaitValue32_v2", "cuCtxAttach", "cuProfilerInitialize"}) {
        CAPTURE(name);
        auto* const function = reinterpret_cast<CUresult (*)()>(shared().symbol(name));
        const bool exported = function != nullptr;
        REQUIRE(exported);
        CHECK(function() == CUDA_ERROR_NOT_SUPPORTED);
        CHECK(shared().report().starts_with(name));
        void* found = nullptr;
        CHECK(shared().get_proc_address(name, &found, 13000, 0, nullptr) == CUDA_ERROR_NOT_FOUND);
    }
    for (const char* name : {"cuLaunchGridAsync", "cuParamSetf", "cuCtxDetach", "cuDeviceGetProperties",
                             "cuCtxGetSharedMemConfig", "cuFuncSetSharedMemConfig", "cuMemHostGetFlags",
                             "cuMemcpy3DPeerAsync", "cuLibraryGetManaged"}) {
        CAPTURE(name);
        const bool exported = shared().symbol(name) != nullptr;
        CHECK(exported);
    }
    int major = 0, minor = 0;
    CHECK(shared().cuDeviceComputeCapability(&major, &minor, 0) == CUDA_SUCCESS);
    CHECK(10 * major + minor == 80);
}

TEST_CASE("the CUDA runtime's private tables are refused") {
    const void* table = nullptr;
    const CUuuid id{};
    CHECK(shared().cuGetExportTable(&table, &id) == CUDA_ERROR_STUB_LIBRARY);
    CHECK(table == nullptr);
}

namespace {

CUresult without_memory(int) { throw std::bad_alloc(); }
CUresult too_long(int) { throw std::length_error("longer than memory"); }
CUresult without_threads(int) { throw std::runtime_error("no thread"); }

}  // namespace

TEST_CASE("what a function of the C interface throws becomes a code") {
    using emulated::driver::always;
    using emulated::driver::guarded;
    CHECK(guarded<&always, &without_memory>(0) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(guarded<&always, &too_long>(0) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(guarded<&always, &without_threads>(0) == CUDA_ERROR_UNKNOWN);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // sanitizers reserve address space
TEST_CASE("a text for which there is no memory is an error, and the device goes on") {
    const auto result = client::run_child("run out of memory", "eager");
    CHECK(result.exit_code == 0);
    CHECK(result.says("loading: " + std::to_string(CUDA_ERROR_OUT_OF_MEMORY) + ", value 1"));
}
#endif

TEST_CASE("calls are counted by name") {
    const auto before = shared().call_count("cuDriverGetVersion");
    int version = 0;
    shared().cuDriverGetVersion(&version);
    shared().cuDriverGetVersion(&version);
    CHECK(version == 13000);
    CHECK(shared().call_count("cuDriverGetVersion") == before + 2);
    CHECK(shared().call_count("cuMakeCoffee") == 0);
    CHECK(shared().abi() == BASCULE_EMULATED_ABI);
}

// --- devices and contexts

TEST_CASE("the device says what it is") {
    std::array<char, 64> name{};
    CHECK(shared().cuDeviceGetName(name.data(), static_cast<int>(name.size()), 0) == CUDA_SUCCESS);
    CHECK(std::string(name.data()) == "Bascule emulated device");
    const auto attribute = [](CUdevice_attribute which) {
        int value = -1;
        CHECK(shared().cuDeviceGetAttribute(&value, which, 0) == CUDA_SUCCESS);
        return value;
    };
    CHECK(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) == 8);
    CHECK(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) == 0);
    CHECK(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE) == 32);
    CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK) == 1024);
    CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) == 166912);
    CHECK(attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) == 1);
}

TEST_CASE("the device answers the attributes that a driver of its version knows, and refuses all others") {
    const auto code = [](const Library& library, int which) {
        int value = 0;
        return library.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(which), 0);
    };
    for (int which = 1; which <= 147; ++which) {
        CAPTURE(which);
        CHECK(code(shared(), which) == CUDA_SUCCESS);
    }
    for (const int which : {-1, 0, 148, 100000}) {
        CAPTURE(which);
        CHECK(code(shared(), which) == CUDA_ERROR_INVALID_VALUE);
    }
}

TEST_CASE("a name that is too long for the buffer is cut and terminated") {
    std::array<char, 8> name;
    name.fill('x');
    shared().cuDeviceGetName(name.data(), static_cast<int>(name.size()), 0);
    CHECK(std::string(name.data()) == "Bascule");
}

TEST_CASE("a device that is not there is invalid") {
    CUdevice device = 0;
    CHECK(shared().cuDeviceGet(&device, 1) == CUDA_ERROR_INVALID_DEVICE);
    CHECK(shared().cuDeviceGet(&device, -1) == CUDA_ERROR_INVALID_DEVICE);
}

TEST_CASE("as many devices as were asked for, each with a context of its own") {
    Library library({{"BASCULE_EMULATED_DEVICES", "2"}});
    int count = 0;
    CHECK(library.cuDeviceGetCount(&count) == CUDA_SUCCESS);
    CHECK(count == 2);
    CUcontext first = nullptr;
    CUcontext second = nullptr;
    library.cuDevicePrimaryCtxRetain(&first, 0);
    library.cuDevicePrimaryCtxRetain(&second, 1);
    CHECK(first != second);
    library.cuCtxSetCurrent(second);
    CUdevice device = -1;
    library.cuCtxGetDevice(&device);
    CHECK(device == 1);
    CUdeviceptr address = 0;
    library.cuMemAlloc(&address, 64);
    int ordinal = -1;
    library.cuCtxSetCurrent(first);
    library.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
    CHECK(ordinal == 1);
}

TEST_CASE("contexts are a stack of each thread") {
    Device device;
    CUcontext outer = nullptr;
    device.api.cuCtxGetCurrent(&outer);
    CUcontext inner = nullptr;
    CHECK(device.api.cuCtxCreate(&inner, nullptr, 0, 0) == CUDA_SUCCESS);
    CUcontext current = nullptr;
    device.api.cuCtxGetCurrent(&current);
    CHECK(current == inner);
    CUcontext popped = nullptr;
    CHECK(device.api.cuCtxPopCurrent(&popped) == CUDA_SUCCESS);
    CHECK(popped == inner);
    device.api.cuCtxGetCurrent(&current);
    CHECK(current == outer);
    CHECK(device.api.cuCtxDestroy(inner) == CUDA_SUCCESS);
    // The handle of a destroyed context is harmless: a call that uses it returns an error.
    device.api.cuCtxPushCurrent(inner);
    CHECK(device.api.cuCtxSynchronize() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    device.api.cuCtxSetCurrent(outer);
}

TEST_CASE("without a current context there is nothing to allocate in") {
    Library library;
    CUdeviceptr address = 0;
    CHECK(library.cuMemAlloc(&address, 64) == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("errors have their names and a text") {
    const char* name = nullptr;
    const char* text = nullptr;
    CHECK(shared().cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &name) == CUDA_SUCCESS);
    CHECK(std::string(name) == "CUDA_ERROR_ILLEGAL_ADDRESS");
    CHECK(shared().cuGetErrorString(CUDA_ERROR_ILLEGAL_ADDRESS, &text) == CUDA_SUCCESS);
    CHECK(std::string(text) != "");
    CHECK(shared().cuGetErrorName(static_cast<CUresult>(1000), &name) == CUDA_ERROR_INVALID_VALUE);
    CHECK(name == nullptr);
}
