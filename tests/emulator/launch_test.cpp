// Code and launches through the driver's C ABI: libraries, kernels, and valid launch configurations.
#include <array>
#include <cstdint>
#include <numeric>
#include <string>

#include <doctest/doctest.h>

#include "client.hpp"

using client::Device;
using client::Library;

namespace {

CUlaunchConfig one_thread() {
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    return config;
}

CUresult load(Library& api, const char* text, std::string& log) {
    std::array<char, 512> buffer{};
    std::array<CUjit_option, 2> options{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    std::array<void*, 2> values{buffer.data(), reinterpret_cast<void*>(buffer.size())};
    CUlibrary library = nullptr;
    const CUresult code =
        api.cuLibraryLoadData(&library, text, options.data(), values.data(), 2, nullptr, nullptr, 0);
    log = buffer.data();
    if (code == CUDA_SUCCESS) api.cuLibraryUnload(library);
    return code;
}

}  // namespace

TEST_CASE("text that is not PTX is refused with the line in the caller's log") {
    Device device;
    std::string log;
    CHECK(load(device.api, ".version 8.0\n.target sm_80\n.address_size 64\nnonsense here;\n", log) ==
          CUDA_ERROR_INVALID_PTX);
    CHECK(log.find("line 4") != std::string::npos);
}

TEST_CASE("machine code is refused with advice") {
    Device device;
    std::string log;
    CHECK(load(device.api, "\177ELF and what follows", log) == CUDA_ERROR_NO_BINARY_FOR_GPU);
    CHECK(log.find("compute_80") != std::string::npos);
}

TEST_CASE("a kernel that cannot run here is refused alone, with its line in the report") {
    Device device;
    CUlibrary library = nullptr;
    REQUIRE(device.api.cuLibraryLoadData(&library, client::program, nullptr, nullptr, 0, nullptr, nullptr,
                                         0) == CUDA_SUCCESS);
    CUkernel kernel = nullptr;
    CHECK(device.api.cuLibraryGetKernel(&kernel, library, "refused") == CUDA_ERROR_NOT_SUPPORTED);
    const std::string report = device.api.report();
    CHECK(report.find("frobnicate") != std::string::npos);
    CHECK(report.find("line ") != std::string::npos);
    CHECK(device.api.cuLibraryGetKernel(&kernel, library, "increment") == CUDA_SUCCESS);
    CHECK(device.api.cuLibraryGetKernel(&kernel, library, "absent") == CUDA_ERROR_NOT_FOUND);
    CHECK(device.api.cuLibraryUnload(library) == CUDA_SUCCESS);
    CHECK(device.api.cuLibraryGetKernel(&kernel, library, "increment") == CUDA_ERROR_INVALID_HANDLE);
}

// cuLibraryUnload: the documentation does not say that it waits for launches, or keeps their code.
TEST_CASE("a launch that has not run when its code is unloaded is a fault that says so") {
    Library library({{"BASCULE_EMULATED_SCHEDULE", "lazy"}});
    Device device(library);
    CUlibrary code = nullptr;
    CUkernel kernel = nullptr;
    REQUIRE(library.cuLibraryLoadData(&code, client::program, nullptr, nullptr, 0, nullptr, nullptr, 0) ==
            CUDA_SUCCESS);
    REQUIRE(library.cuLibraryGetKernel(&kernel, code, "increment") == CUDA_SUCCESS);
    CUdeviceptr x = 0;
    REQUIRE(library.cuMemAlloc(&x, 4) == CUDA_SUCCESS);
    void* parameters[] = {&x};
    CUlaunchConfig config = one_thread();
    REQUIRE(library.cuLaunchKernelEx(&config, reinterpret_cast<CUfunction>(kernel), parameters, nullptr) ==
            CUDA_SUCCESS);
    CHECK(library.cuLibraryUnload(code) == CUDA_SUCCESS);
    CHECK(library.cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(library.report().find("kernel 'increment' was launched, and its code was unloaded") !=
          std::string::npos);
}

TEST_CASE("parameters can be counted: past the last one there is none") {
    Device device;
    auto* kernel = reinterpret_cast<CUkernel>(device.kernel("increment"));
    std::size_t offset = 99;
    std::size_t bytes = 0;
    CHECK(device.api.cuKernelGetParamInfo(kernel, 0, &offset, &bytes) == CUDA_SUCCESS);
    CHECK(offset == 0);
    CHECK(bytes == 8);
    CHECK(device.api.cuKernelGetParamInfo(kernel, 1, &offset, &bytes) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("variables have their true size and initial value, and each context has its own") {
    Device device;
    CUlibrary library = nullptr;
    device.api.cuLibraryLoadData(&library, client::program, nullptr, nullptr, 0, nullptr, nullptr, 0);
    const auto counter = [&] {
        CUdeviceptr address = 0;
        std::size_t bytes = 0;
        CHECK(device.api.cuLibraryGetGlobal(&address, &bytes, library, "counter") == CUDA_SUCCESS);
        CHECK(bytes == 4);
        return address;
    };
    const CUdeviceptr here = counter();
    unsigned value = 0;
    device.api.cuMemcpyDtoH(&value, here, sizeof value);
    CHECK(value == 7);
    value = 8;
    device.api.cuMemcpyHtoD(here, &value, sizeof value);

    CUcontext other = nullptr;
    device.api.cuCtxCreate(&other, nullptr, 0, 0);
    const CUdeviceptr there = counter();
    CHECK(there != here);
    device.api.cuMemcpyDtoH(&value, there, sizeof value);
    CHECK(value == 7);
    device.api.cuCtxDestroy(other);
    device.api.cuLibraryUnload(library);
}

TEST_CASE("a module belongs to the context it was loaded into") {
    Device device;
    CUmodule module = nullptr;
    CHECK(device.api.cuModuleLoadDataEx(&module, client::program, 0, nullptr, nullptr) == CUDA_SUCCESS);
    CUfunction function = nullptr;
    CHECK(device.api.cuModuleGetFunction(&function, module, "increment") == CUDA_SUCCESS);
    CUdeviceptr x = device.floats(1, 1.0F);
    void* parameters[] = {&x};
    const CUlaunchConfig config = one_thread();
    CHECK(device.api.cuLaunchKernelEx(&config, function, parameters, nullptr) == CUDA_SUCCESS);
    CHECK(device.read(x) == 2.0F);
    CHECK(device.api.cuModuleUnload(module) == CUDA_SUCCESS);
}

// --- launches

TEST_CASE("a kernel runs over its whole grid") {
    Device device;
    const CUdeviceptr x = device.floats(1000, 1.0F);
    CHECK(device.launch("increment", nullptr, x, 10, 100) == CUDA_SUCCESS);
    std::array<float, 1000> values{};
    device.api.cuMemcpyDtoH(values.data(), x, sizeof values);
    CHECK(std::accumulate(values.begin(), values.end(), 0.0F) == 2000.0F);
}

TEST_CASE("arguments can be handed over as one buffer") {
    Device device;
    CUdeviceptr x = device.floats(1, 4.0F);
    std::size_t bytes = sizeof x;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &x, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    const CUlaunchConfig config = one_thread();
    CHECK(device.api.cuLaunchKernelEx(&config, device.kernel("increment"), nullptr, extra) == CUDA_SUCCESS);
    CHECK(device.read(x) == 5.0F);
    bytes = 4;  // too few
    CHECK(device.api.cuLaunchKernelEx(&config, device.kernel("increment"), nullptr, extra) ==
          CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a launch that no device could run is refused before anything runs") {
    Device device;
    CUdeviceptr x = device.floats(1, 0.0F);
    void* parameters[] = {&x};
    const auto refused = [&](auto change) {
        CUlaunchConfig config = one_thread();
        change(config);
        return device.api.cuLaunchKernelEx(&config, device.kernel("increment"), parameters, nullptr);
    };
    CHECK(refused([](CUlaunchConfig& c) { c.blockDimX = 1025; }) == CUDA_ERROR_INVALID_VALUE);
    CHECK(refused([](CUlaunchConfig& c) { c.blockDimX = c.blockDimY = 33; }) == CUDA_ERROR_INVALID_VALUE);
    CHECK(refused([](CUlaunchConfig& c) { c.blockDimZ = 65; }) == CUDA_ERROR_INVALID_VALUE);
    CHECK(refused([](CUlaunchConfig& c) { c.blockDimX = 0; }) == CUDA_ERROR_INVALID_VALUE);
    CHECK(refused([](CUlaunchConfig& c) { c.gridDimX = 0; }) == CUDA_ERROR_INVALID_VALUE);
    CHECK(refused([](CUlaunchConfig& c) { c.gridDimY = 65536; }) == CUDA_ERROR_INVALID_VALUE);
    CHECK(refused([](CUlaunchConfig& c) { c.gridDimX = 2147483648U; }) == CUDA_ERROR_INVALID_VALUE);
    CHECK(refused([](CUlaunchConfig& c) { c.sharedMemBytes = 49153; }) == CUDA_ERROR_INVALID_VALUE);
    CHECK(device.read(x) == 0.0F);
}

TEST_CASE("a kernel that requires a block runs with no other one") {
    Device device;
    CUmodule module = nullptr;
    const char* text =
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() .reqntid 8, 4 { ret; }\n";
    REQUIRE(device.api.cuModuleLoadDataEx(&module, text, 0, nullptr, nullptr) == CUDA_SUCCESS);
    CUfunction kernel = nullptr;
    REQUIRE(device.api.cuModuleGetFunction(&kernel, module, "k") == CUDA_SUCCESS);
    const auto launch = [&](unsigned x, unsigned y, unsigned z) {
        return device.api.cuLaunchKernel(kernel, 2, 1, 1, x, y, z, 0, nullptr, nullptr, nullptr);
    };
    CHECK(launch(8, 4, 1) == CUDA_SUCCESS);
    CHECK(launch(4, 8, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(launch(8, 4, 2) == CUDA_ERROR_INVALID_VALUE);
    CHECK(launch(8, 2, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(device.api.report().find("requires blocks of (8, 4, 1) threads") != std::string::npos);
    CHECK(device.api.cuCtxSynchronize() == CUDA_SUCCESS);
    CHECK(device.api.cuModuleUnload(module) == CUDA_SUCCESS);
}

TEST_CASE("more shared memory than 48 KB has to be asked for, up to what an sm_80 has") {
    Device device;
    CUdeviceptr x = device.floats(1, 0.0F);
    void* parameters[] = {&x};
    auto* kernel = reinterpret_cast<CUkernel>(device.kernel("increment"));
    const auto allow = [&](int bytes) {
        return device.api.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes, kernel,
                                               0);
    };
    CHECK(allow(166913) == CUDA_ERROR_INVALID_VALUE);
    CHECK(allow(65536) == CUDA_SUCCESS);
    CUlaunchConfig config = one_thread();
    config.sharedMemBytes = 65536;
    CHECK(device.api.cuLaunchKernelEx(&config, reinterpret_cast<CUfunction>(kernel), parameters, nullptr) ==
          CUDA_SUCCESS);
    CHECK(device.read(x) == 1.0F);
}

TEST_CASE("a launch attribute that this device lacks is refused") {
    Device device;
    CUdeviceptr x = device.floats(1, 0.0F);
    void* parameters[] = {&x};
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim = {2, 1, 1};
    CUlaunchConfig config = one_thread();
    config.attrs = &attribute;
    config.numAttrs = 1;
    CHECK(device.api.cuLaunchKernelEx(&config, device.kernel("increment"), parameters, nullptr) !=
          CUDA_SUCCESS);
    CHECK(device.read(x) == 0.0F);
}

TEST_CASE("invented handles are refused, not followed") {
    Device device;
    CUdeviceptr x = device.floats(1, 0.0F);
    auto* invented = reinterpret_cast<CUstream>(std::uintptr_t{0x1234560});
    CHECK(device.launch("increment", invented, x) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(device.api.cuStreamSynchronize(invented) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(device.api.cuEventQuery(reinterpret_cast<CUevent>(invented)) == CUDA_ERROR_INVALID_HANDLE);
    const CUlaunchConfig config = one_thread();
    CHECK(device.api.cuLaunchKernelEx(&config, reinterpret_cast<CUfunction>(invented), nullptr, nullptr) ==
          CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("in null mode launches return at once and copies still happen") {
    Library library({{"BASCULE_EMULATED_EXECUTE", "0"}});
    Device device(library);
    const CUdeviceptr x = device.floats(1, 3.0F);
    CHECK(device.launch("increment", nullptr, x) == CUDA_SUCCESS);
    CHECK(device.launch("trap", nullptr, x) == CUDA_SUCCESS);
    CHECK(device.read(x) == 3.0F);
    CHECK(device.launch("increment", nullptr, x, 1, 1025) == CUDA_ERROR_INVALID_VALUE);
}

// --- linking, as numba-cuda does before it loads

TEST_CASE("one PTX text is linked to what loads") {
    Device device;
    CUlinkState link = nullptr;
    REQUIRE(device.api.cuLinkCreate(0, nullptr, nullptr, &link) == CUDA_SUCCESS);
    std::string text = client::program;
    CHECK(device.api.cuLinkAddData(link, CU_JIT_INPUT_PTX, text.data(), text.size() + 1, "a.ptx", 0, nullptr,
                                   nullptr) == CUDA_SUCCESS);
    void* image = nullptr;
    std::size_t bytes = 0;
    CHECK(device.api.cuLinkComplete(link, &image, &bytes) == CUDA_SUCCESS);
    CHECK(bytes == text.size() + 1);
    std::string log;
    CHECK(load(device.api, static_cast<const char*>(image), log) == CUDA_SUCCESS);
    CHECK(device.api.cuLinkDestroy(link) == CUDA_SUCCESS);
    CHECK(device.api.cuLinkDestroy(link) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("what cannot be linked is refused in the caller's log") {
    Device device;
    std::array<char, 512> buffer{};
    std::array<CUjit_option, 2> options{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    std::array<void*, 2> values{buffer.data(), reinterpret_cast<void*>(buffer.size())};
    CUlinkState link = nullptr;
    REQUIRE(device.api.cuLinkCreate(2, options.data(), values.data(), &link) == CUDA_SUCCESS);
    const auto add = [&](CUjitInputType type, std::string text) {
        return device.api.cuLinkAddData(link, type, text.data(), text.size(), "b", 0, nullptr, nullptr);
    };
    CHECK(add(CU_JIT_INPUT_CUBIN, "\177ELF") == CUDA_ERROR_NO_BINARY_FOR_GPU);
    CHECK(std::string(buffer.data()).find("compute_80") != std::string::npos);
    CHECK(reinterpret_cast<std::size_t>(values[1]) == std::string(buffer.data()).size());
    CHECK(add(CU_JIT_INPUT_PTX, "nonsense") == CUDA_ERROR_INVALID_PTX);
    CHECK(std::string(buffer.data()).find("line 1") != std::string::npos);
    CHECK(device.api.cuLinkComplete(link, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
    CHECK(device.api.cuLinkDestroy(link) == CUDA_SUCCESS);
}

TEST_CASE("device printf goes where the client says") {
    Device device;
    static std::string printed;
    auto* set_print = reinterpret_cast<decltype(&bascule_emulated_set_print)>(
        device.api.symbol("bascule_emulated_set_print"));
    const bool found = set_print != nullptr;
    REQUIRE(found);
    set_print([](const char* text, std::size_t length) { printed.append(text, length); });
    CUlibrary library = nullptr;
    REQUIRE(
        device.api.cuLibraryLoadData(
            &library,
            ".version 8.0\n.target sm_80\n.address_size 64\n"
            ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n"
            ".global .b8 format[] = {72, 105, 10, 0};\n"
            ".entry k() { .reg .b64 %d<3>; mov.u64 %d1, format; mov.u64 %d2, 0;\n"
            "{ .param .b64 f; .param .b64 v; .param .b32 r; st.param.b64 [f], %d1; st.param.b64 [v], %d2;\n"
            "call.uni (r), vprintf, (f, v); } ret; }",
            nullptr, nullptr, 0, nullptr, nullptr, 0) == CUDA_SUCCESS);
    CUkernel kernel = nullptr;
    REQUIRE(device.api.cuLibraryGetKernel(&kernel, library, "k") == CUDA_SUCCESS);
    CHECK(device.api.cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 2, 1, 1, 0, nullptr,
                                    nullptr, nullptr) == CUDA_SUCCESS);
    CHECK(device.api.cuCtxSynchronize() == CUDA_SUCCESS);
    set_print(nullptr);
    CHECK(printed == "Hi\nHi\n");
    device.api.cuLibraryUnload(library);
}

// These functions are from before CUDA 4. PyCUDA still sets the block before each launch.
TEST_CASE("a function's block and parameters are set one by one, and are there at each cuLaunchGrid") {
    Device device;
    const CUdeviceptr x = device.floats(8, 1.0F);
    const CUfunction increment = device.kernel("increment");
    CUdeviceptr address = x;
    CHECK(device.api.cuFuncSetBlockShape(increment, 4, 1, 1) == CUDA_SUCCESS);
    CHECK(device.api.cuFuncSetBlockShape(increment, 0, 1, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(device.api.cuLaunchGrid(increment, 2, 1) == CUDA_ERROR_INVALID_VALUE);  // no parameters yet
    CHECK(device.api.cuParamSetSize(increment, 8) == CUDA_SUCCESS);
    CHECK(device.api.cuParamSetv(increment, 0, &address, sizeof address) == CUDA_SUCCESS);
    for (int i = 0; i < 2; ++i) CHECK(device.api.cuLaunchGrid(increment, 2, 1) == CUDA_SUCCESS);
    for (unsigned i = 0; i < 8; ++i) CHECK(device.read(x + 4 * i) == 3.0F);
    CHECK(device.api.cuParamSeti(nullptr, 0, 1) == CUDA_ERROR_INVALID_HANDLE);
}

// cuLibraryGetModule: returns "the module handle associated with the current context".
TEST_CASE("a library has a module, whose functions run, and which is not unloaded") {
    Device device;
    CUlibrary library = nullptr;
    REQUIRE(device.api.cuLibraryLoadData(&library, client::program, nullptr, nullptr, 0, nullptr, nullptr,
                                         0) == CUDA_SUCCESS);
    CUmodule module = nullptr;
    REQUIRE(device.api.cuLibraryGetModule(&module, library) == CUDA_SUCCESS);
    CUfunction increment = nullptr;
    CHECK(device.api.cuModuleGetFunction(&increment, module, "increment") == CUDA_SUCCESS);
    CUdeviceptr x = device.floats(1, 1.0F);
    void* parameters[] = {&x};
    CHECK(device.api.cuLaunchKernel(increment, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) ==
          CUDA_SUCCESS);
    CHECK(device.read(x) == 2.0F);
    CHECK(device.api.cuModuleUnload(module) == CUDA_ERROR_NOT_PERMITTED);
    CHECK(device.api.cuLibraryGetModule(&module, nullptr) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(device.api.cuLibraryUnload(library) == CUDA_SUCCESS);
}

// CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: "the size in bytes of user-allocated constant memory required by this function".
TEST_CASE("a kernel's constants are its module's") {
    Device device;
    int bytes = 0;
    CHECK(device.api.cuKernelGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES,
                                          reinterpret_cast<CUkernel>(device.kernel("twice")),
                                          0) == CUDA_SUCCESS);
    CHECK(bytes == 64);  // `table`
}

// cuOccupancyAvailableDynamicSMemPerBlock, of a kernel that may have no more than 48 KB unless it asks for more.
TEST_CASE("available shared memory is not more than the kernel may have") {
    Device device;
    const CUfunction function = device.kernel("twice");
    const auto kernel = reinterpret_cast<CUkernel>(function);
    std::size_t bytes = 0;
    CHECK(device.api.cuOccupancyAvailableDynamicSMemPerBlock(&bytes, function, 1, 32) == CUDA_SUCCESS);
    CHECK(bytes == 48 * 1024);
    constexpr auto limit = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    CHECK(device.api.cuKernelSetAttribute(limit, 100'000, kernel, 0) == CUDA_SUCCESS);
    CHECK(device.api.cuOccupancyAvailableDynamicSMemPerBlock(&bytes, function, 1, 32) == CUDA_SUCCESS);
    CHECK(bytes == 100'000);
    CHECK(device.api.cuOccupancyAvailableDynamicSMemPerBlock(&bytes, function, 16, 32) == CUDA_SUCCESS);
    CHECK(bytes < 12 * 1024);
}

// CU_JIT_MAX_REGISTERS: "max number of registers that a thread may use", for loaded and for linked code.
TEST_CASE("a limit of registers holds for kernels that have none of their own") {
    Device device;
    std::string text = ".version 7.0\n.target sm_80\n.address_size 64\n// .entry { none }\n";
    for (const char* name : {"plain", "limited"}) {
        text += std::string(".visible .entry ") + name + "(.param .u64 p)" +
                (name[0] == 'l' ? " .maxnreg 64" : "") +
                " {\n.reg .b32 %r<80>; .reg .b64 %d<2>; ld.param.u64 %d1, [p];\n";
        for (const char* access : {"ld.global.u32 %r#, [%d1+@];\n", "st.global.u32 [%d1+@], %r#;\n"}) {
            for (int i = 0; i < 80; ++i) {
                std::string line = access;
                line.replace(line.find('#'), 1, std::to_string(i));
                line.replace(line.find('@'), 1, std::to_string(4 * i));
                text += line;
            }
        }
        text += "ret; }\n";
    }
    CUjit_option option = CU_JIT_MAX_REGISTERS;
    void* value = reinterpret_cast<void*>(std::uintptr_t{40});
    const auto registers = [&](const void* code, unsigned options, const char* name) {
        CUlibrary library = nullptr;
        REQUIRE(device.api.cuLibraryLoadData(&library, code, &option, &value, options, nullptr, nullptr, 0) ==
                CUDA_SUCCESS);
        CUkernel kernel = nullptr;
        REQUIRE(device.api.cuLibraryGetKernel(&kernel, library, name) == CUDA_SUCCESS);
        int count = 0;
        CHECK(device.api.cuKernelGetAttribute(&count, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, 0) == CUDA_SUCCESS);
        CHECK(device.api.cuLibraryUnload(library) == CUDA_SUCCESS);
        return count;
    };
    CHECK(registers(text.c_str(), 0, "plain") > 64);
    CHECK(registers(text.c_str(), 1, "plain") == 40);
    CHECK(registers(text.c_str(), 1, "limited") == 64);

    CUlinkState link = nullptr;
    REQUIRE(device.api.cuLinkCreate(1, &option, &value, &link) == CUDA_SUCCESS);
    CHECK(device.api.cuLinkAddData(link, CU_JIT_INPUT_PTX, text.data(), text.size() + 1, "text", 0, nullptr,
                                   nullptr) == CUDA_SUCCESS);
    void* image = nullptr;
    std::size_t bytes = 0;
    CHECK(device.api.cuLinkComplete(link, &image, &bytes) == CUDA_SUCCESS);
    CHECK(registers(image, 0, "plain") == 40);
    CHECK(device.api.cuLinkDestroy(link) == CUDA_SUCCESS);
}
