// cuLink* with several PTX texts: names that one text uses and another one defines, and names that both define.
#include <array>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "client.hpp"

namespace client {
namespace {

std::string text(const std::string& body) { return ".version 8.0\n.target sm_80\n.address_size 64\n" + body; }

const std::string caller = text(R"(
.file 1 "caller.cu"
.extern .func (.param .b32 r) twice (.param .b32 x);
.extern .global .align 4 .b32 table[2];
.global .align 4 .u32 own = 100;
.weak .func (.param .b32 r) shared_by_both (.param .b32 x) {
  .reg .b32 %r<2>; ld.param.b32 %r0, [x]; add.u32 %r0, %r0, 1000; st.param.b32 [r], %r0; ret;
}
.visible .entry apply(.param .u64 p) {
  .reg .b32 %r<6>; .reg .b64 %rd<2>;
  .loc 1 7 1
  ld.param.u64 %rd0, [p];
  ld.global.u32 %r0, [%rd0];
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r0; call.uni (b), twice, (a); ld.param.b32 %r1, [b]; }
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), shared_by_both, (a); ld.param.b32 %r1, [b]; }
  ld.global.u32 %r2, [table+4];
  ld.global.u32 %r3, [own];
  add.u32 %r1, %r1, %r2;
  add.u32 %r1, %r1, %r3;
  st.global.u32 [%rd0], %r1;
  ret;
}
)");
const std::string callee = text(R"(
.file 1 "callee.cu"
.visible .global .align 4 .b32 table[2] = {7, 30};
.global .align 4 .u32 own = 5;
.weak .func (.param .b32 r) shared_by_both (.param .b32 x) {
  .reg .b32 %r<2>; ld.param.b32 %r0, [x]; add.u32 %r0, %r0, 1000; st.param.b32 [r], %r0; ret;
}
.visible .func (.param .b32 r) twice (.param .b32 x) {
  .reg .b32 %r<3>;
  .loc 1 3 1
  ld.param.b32 %r0, [x];
  ld.global.u32 %r1, [own];
  add.u32 %r0, %r0, %r0;
  add.u32 %r0, %r0, %r1;
  st.param.b32 [r], %r0;
  ret;
}
)");

/// A link to which texts are added in order, with its error log.
struct Linking {
    explicit Linking(Device& the_device) : device(the_device) {
        REQUIRE(device.api.cuLinkCreate(2, options.data(), values.data(), &link) == CUDA_SUCCESS);
    }
    ~Linking() { CHECK(device.api.cuLinkDestroy(link) == CUDA_SUCCESS); }

    CUresult add(std::string ptx, const char* name) {
        return device.api.cuLinkAddData(link, CU_JIT_INPUT_PTX, ptx.data(), ptx.size() + 1, name, 0, nullptr,
                                        nullptr);
    }
    CUresult complete() {
        std::size_t bytes = 0;
        return device.api.cuLinkComplete(link, &image, &bytes);
    }
    bool says(const std::string& part) const {
        return std::string(log.data()).find(part) != std::string::npos;
    }

    /// Completes the link, launches one thread with the address of a word initialized to `start`, and returns the word.
    unsigned int word_after(const char* kernel, unsigned int start) {
        REQUIRE(complete() == CUDA_SUCCESS);
        CUmodule module = nullptr;
        REQUIRE(device.api.cuModuleLoadDataEx(&module, image, 0, nullptr, nullptr) == CUDA_SUCCESS);
        CUfunction function = nullptr;
        REQUIRE(device.api.cuModuleGetFunction(&function, module, kernel) == CUDA_SUCCESS);
        CUdeviceptr x = 0;
        REQUIRE(device.api.cuMemAlloc(&x, 4) == CUDA_SUCCESS);
        REQUIRE(device.api.cuMemcpyHtoD(x, &start, 4) == CUDA_SUCCESS);
        void* arguments[] = {&x};
        REQUIRE(device.api.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr) ==
                CUDA_SUCCESS);
        unsigned int result = 0;
        REQUIRE(device.api.cuMemcpyDtoH(&result, x, 4) == CUDA_SUCCESS);
        CHECK(device.api.cuModuleUnload(module) == CUDA_SUCCESS);
        return result;
    }

    Device& device;
    std::array<char, 1024> log{};
    std::array<CUjit_option, 2> options{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(log.size())};
    CUlinkState link = nullptr;
    void* image = nullptr;
};

TEST_CASE("several PTX texts link to one, in either order, and local names stay apart") {
    for (const bool caller_first : {true, false}) {
        Device device;
        Linking linking(device);
        CHECK(linking.add(caller_first ? caller : callee, "first") == CUDA_SUCCESS);
        CHECK(linking.add(caller_first ? callee : caller, "second") == CUDA_SUCCESS);
        CHECK(linking.word_after("apply", 11) == 2 * 11 + 5 + 1000 + 30 + 100);
    }
}

TEST_CASE("a weak definition gives way to another text's, and the newest header counts") {
    const std::string weak = text(R"(
.weak .func (.param .b32 r) which () { st.param.b32 [r], 1; ret; }
.visible .entry asks(.param .u64 p) {
  .reg .b32 %r<2>; .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p];
  { .param .b32 a; call.uni (a), which, (); ld.param.b32 %r1, [a]; }
  st.global.u32 [%rd1], %r1;
  ret;
}
)");
    const std::string strong =
        ".version 8.3\n.target sm_80\n.visible .func (.param .b32 r) which () { .reg .b128 %q; st.param.b32 [r], 2; ret; }";
    for (const bool weak_first : {true, false}) {
        Device device;
        Linking linking(device);
        CHECK(linking.add(weak_first ? weak : strong, "first") == CUDA_SUCCESS);
        CHECK(linking.add(weak_first ? strong : weak, "second") == CUDA_SUCCESS);
        CHECK(linking.word_after("asks", 0) == 2);
        CHECK(std::string(static_cast<const char*>(linking.image))
                  .starts_with(".version 8.3\n.target sm_80\n"));
    }
}

// "optionValues must remain valid for the life of the CUlinkState": cuda.core before 1.2 does not keep them.
TEST_CASE("a link without an error writes an empty log when it is created, and nothing later") {
    Device device;
    Linking linking(device);
    CHECK(linking.values[1] == nullptr);
    linking.values[1] = &linking;
    CHECK(linking.add(callee, "callee") == CUDA_SUCCESS);
    CHECK(linking.complete() == CUDA_SUCCESS);
    CHECK(linking.values[1] == &linking);
}

// numba-cuda adds CUDA's device runtime to every link of a kernel that waits for its grid.
const std::string waits_for_its_grid = text(R"(
.extern .func (.param .b64 r) cudaCGGetIntrinsicHandle (.param .b32 scope);
.extern .func (.param .b32 r) cudaCGSynchronize (.param .b64 handle, .param .b32 flags);
.visible .entry turn(.param .u64 p) {
  .reg .b32 %r<6>; .reg .b64 %rd<4>;
  ld.param.u64 %rd0, [p];
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %nctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r0, %r2, %r3;  // this thread's number goes to its own place
  mad.wide.u32 %rd1, %r4, 4, %rd0;
  st.global.u32 [%rd1], %r4;
  { .param .b32 a; .param .b64 b; st.param.b32 [a], 1; call.uni (b), cudaCGGetIntrinsicHandle, (a); ld.param.b64 %rd2, [b]; }
  { .param .b64 a; .param .b32 f; .param .b32 b; st.param.b64 [a], %rd2; st.param.b32 [f], 0;
    call.uni (b), cudaCGSynchronize, (a, f); ld.param.b32 %r5, [b]; }
  mad.lo.u32 %r1, %r1, %r2, -1;
  sub.u32 %r1, %r1, %r4;  // and what the opposite one wrote there is read
  mad.wide.u32 %rd3, %r1, 4, %rd0;
  ld.global.u32 %r1, [%rd3];
  mul.lo.u32 %r2, %r2, 4;  // of four blocks
  mad.wide.u32 %rd1, %r2, 4, %rd1;
  add.u32 %r1, %r1, %r5;
  st.global.u32 [%rd1], %r1;
  ret;
}
)");

TEST_CASE("a kernel linked with CUDA's device runtime waits for its grid; other libraries are refused") {
    Device device;
    Linking linking(device);
    std::string archive = "!<arch>\n";
    const auto add_library = [&](const char* name) {
        return device.api.cuLinkAddData(linking.link, CU_JIT_INPUT_LIBRARY, archive.data(), archive.size(),
                                        name, 0, nullptr, nullptr);
    };
    CHECK(linking.add(waits_for_its_grid, "kernel") == CUDA_SUCCESS);
    CHECK(add_library("libother.a") == CUDA_ERROR_NO_BINARY_FOR_GPU);
    CHECK(linking.says("'libother.a' is not PTX"));
    CHECK(add_library("/usr/local/cuda/lib64/libcudadevrt.a") == CUDA_SUCCESS);
    CHECK(add_library("libcudadevrt.a") == CUDA_SUCCESS);  // adding it twice is harmless
    REQUIRE(linking.complete() == CUDA_SUCCESS);
    CUmodule module = nullptr;
    REQUIRE(device.api.cuModuleLoadDataEx(&module, linking.image, 0, nullptr, nullptr) == CUDA_SUCCESS);
    CUfunction turn = nullptr;
    REQUIRE(device.api.cuModuleGetFunction(&turn, module, "turn") == CUDA_SUCCESS);
    constexpr unsigned int blocks = 4, threads = 64;
    std::array<unsigned int, 2 * blocks * threads> host{};
    CUdeviceptr x = 0;
    REQUIRE(device.api.cuMemAlloc(&x, sizeof host) == CUDA_SUCCESS);
    void* arguments[] = {&x};
    CUlaunchAttribute cooperative{};
    cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    cooperative.value.cooperative = 1;
    CUlaunchConfig config{};
    config.gridDimX = blocks;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = threads;
    config.blockDimY = config.blockDimZ = 1;
    config.attrs = &cooperative;
    config.numAttrs = 1;
    REQUIRE(device.api.cuLaunchKernelEx(&config, turn, arguments, nullptr) == CUDA_SUCCESS);
    REQUIRE(device.api.cuMemcpyDtoH(host.data(), x, sizeof host) == CUDA_SUCCESS);
    for (unsigned int i = 0; i < blocks * threads; ++i)
        CHECK(host[blocks * threads + i] == blocks * threads - 1 - i);
    CHECK(device.api.cuModuleUnload(module) == CUDA_SUCCESS);
}

// numba-cuda declares C++ functions that return nothing in this way.
TEST_CASE("a function that another text declares with a result, which it does not have, is called") {
    const std::string declares = text(R"(
.extern .func (.param .b64 r) store_7 (.param .b64 p);
.visible .entry calls(.param .u64 p) {
  .reg .b64 %rd<2>;
  ld.param.u64 %rd0, [p];
  { .param .b64 a; .param .b64 b; st.param.b64 [a], %rd0; call.uni (b), store_7, (a); ld.param.b64 %rd1, [b]; }
  ret;
}
)");
    const std::string defines = text(R"(
.visible .func store_7 (.param .b64 p) {
  .reg .b64 %rd<1>;
  ld.param.b64 %rd0, [p];
  st.global.u32 [%rd0], 7;
  ret;
}
)");
    for (const bool caller_first : {true, false}) {
        Device device;
        Linking linking(device);
        CHECK(linking.add(caller_first ? declares : defines, "first") == CUDA_SUCCESS);
        CHECK(linking.add(caller_first ? defines : declares, "second") == CUDA_SUCCESS);
        CHECK(linking.word_after("calls", 0) == 7);
    }
}

TEST_CASE("what no text defines, and what two define, is in the log") {
    Device device;
    Linking undefined(device);
    CHECK(undefined.add(caller, "caller") == CUDA_SUCCESS);
    CHECK(undefined.add(text(".visible .func unused { ret; }"), "other") == CUDA_SUCCESS);
    CHECK(undefined.complete() == CUDA_ERROR_INVALID_PTX);
    CHECK(undefined.says("not defined: 'twice', 'table'"));
    Linking twice(device);
    CHECK(twice.add(callee, "one.ptx") == CUDA_SUCCESS);
    CHECK(twice.add(callee, "two.ptx") == CUDA_SUCCESS);
    CHECK(twice.complete() == CUDA_ERROR_INVALID_PTX);
    CHECK(twice.says("'table' is defined in 'one.ptx' and in 'two.ptx'"));
}

}  // namespace
}  // namespace client
