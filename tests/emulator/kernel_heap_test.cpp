// The heap of kernels: its size, who may change it, how long its memory lives, and who can access it.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "world.hpp"

using client::Library;
using client::World;

namespace {

// `fill` writes how many allocations of n bytes fit. `make` writes the address of 8 bytes that contain n; `read` writes
// the contents of an address, `release` frees it.
const char* const program = R"(.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
.entry fill(.param .u64 out, .param .u64 n) {
  .reg .b64 %o, %n, %a, %c; .reg .pred %p; .param .b64 p0; .param .b64 r0;
  ld.param.u64 %o, [out]; ld.param.u64 %n, [n]; mov.u64 %c, 0;
again:
  st.param.b64 [p0], %n; call.uni (r0), malloc, (p0); ld.param.b64 %a, [r0];
  setp.eq.u64 %p, %a, 0; @%p bra done; add.u64 %c, %c, 1; bra again;
done: st.global.u64 [%o], %c; ret; }
.entry make(.param .u64 out, .param .u64 n) {
  .reg .b64 %o, %n, %a; .param .b64 p0; .param .b64 r0;
  ld.param.u64 %o, [out]; ld.param.u64 %n, [n];
  st.param.b64 [p0], 8; call.uni (r0), malloc, (p0); ld.param.b64 %a, [r0];
  st.u64 [%a], %n; st.global.u64 [%o], %a; ret; }
.entry read(.param .u64 out, .param .u64 n) {
  .reg .b64 %o, %n, %a; ld.param.u64 %o, [out]; ld.param.u64 %n, [n]; ld.u64 %a, [%n]; st.global.u64 [%o], %a; ret; }
.entry release(.param .u64 out, .param .u64 n) {
  .reg .b64 %n; .param .b64 p0; ld.param.u64 %n, [n]; st.param.b64 [p0], %n; call.uni free, (p0); ret; }
)";

class Kernels {
  public:
    explicit Kernels(World& world) : api_(world.device.api), out_(world.device.allocate(8)) {
        REQUIRE(api_.cuLibraryLoadData(&code_, program, nullptr, nullptr, 0, nullptr, nullptr, 0) ==
                CUDA_SUCCESS);
    }
    ~Kernels() { api_.cuLibraryUnload(code_); }
    Kernels(const Kernels&) = delete;
    Kernels& operator=(const Kernels&) = delete;

    CUresult launch(const char* name, std::uint64_t argument) {
        CUkernel kernel = nullptr;
        REQUIRE(api_.cuLibraryGetKernel(&kernel, code_, name) == CUDA_SUCCESS);
        void* parameters[] = {&out_, &argument};
        const auto function = reinterpret_cast<CUfunction>(kernel);
        return api_.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
    }
    std::uint64_t result_of(const char* name, std::uint64_t argument) {
        REQUIRE(launch(name, argument) == CUDA_SUCCESS);
        std::uint64_t value = 0;
        REQUIRE(api_.cuMemcpyDtoH(&value, out_, 8) == CUDA_SUCCESS);
        return value;
    }

  private:
    Library& api_;
    CUlibrary code_ = nullptr;
    CUdeviceptr out_ = 0;
};

nlohmann::json leaks_of(const Library& library) {
    const auto leaks =
        reinterpret_cast<decltype(&bascule_emulated_leaks)>(library.symbol("bascule_emulated_leaks"));
    std::vector<char> text(leaks(nullptr, 0) + 1);
    leaks(text.data(), text.size());
    return nlohmann::json::parse(text.data());
}

CUresult set_heap_limit(const Library& library, std::size_t bytes) {
    return reinterpret_cast<CUresult (*)(CUlimit, std::size_t)>(library.symbol("cuCtxSetLimit"))(
        CU_LIMIT_MALLOC_HEAP_SIZE, bytes);
}

}  // namespace

TEST_CASE(
    "malloc in a kernel gives null when the heap is full, which holds 8 MB unless the limit says otherwise") {
    for (const std::size_t limit : {0, 1 << 16, 1 << 20}) {
        Library library;
        World world(library);
        Kernels kernels(world);
        if (limit != 0) REQUIRE(set_heap_limit(library, limit) == CUDA_SUCCESS);
        const std::uint64_t made = kernels.result_of("fill", 1000);
        const std::size_t bytes = limit == 0 ? 8 << 20 : limit;
        CHECK(made <= bytes / 1000);
        CHECK(made >= bytes / 1000 * 9 / 10);
        CHECK(kernels.result_of("fill", 1) < 100);  // little of the heap remains
    }
}

// "Setting CU_LIMIT_MALLOC_HEAP_SIZE must be performed before launching any kernel that uses the malloc() or free()
// device system calls, otherwise CUDA_ERROR_INVALID_VALUE will be returned."
TEST_CASE("the size of the heap is fixed by the first kernel that uses it, until the context is reset") {
    Library library;
    World world(library);
    REQUIRE(set_heap_limit(library, 4096) == CUDA_SUCCESS);
    REQUIRE(world.device.launch("increment", nullptr, world.device.floats(1, 0)) == CUDA_SUCCESS);
    REQUIRE(set_heap_limit(library, 1 << 14) == CUDA_SUCCESS);
    {
        Kernels kernels(world);
        CHECK(kernels.result_of("fill", 1024) == 15);
        CHECK(set_heap_limit(library, 1 << 20) == CUDA_ERROR_INVALID_VALUE);
    }
}

TEST_CASE("memory of a kernel lives until a later kernel frees it, and only kernels reach it") {
    Library library;
    World world(library);
    Kernels kernels(world);
    const std::uint64_t address = kernels.result_of("make", 77);
    CHECK(address % 16 == 0);
    CHECK(kernels.result_of("read", address) == 77);
    CHECK(leaks_of(library).at(0).at("bytes") == 8);

    std::uint64_t value = 0;
    CHECK(library.cuMemcpyDtoH(&value, address, 8) == CUDA_ERROR_INVALID_VALUE);
    CHECK(library.report().find("only kernels reach the memory of malloc") != std::string::npos);
    CHECK(library.cuMemcpyHtoD(address, &value, 8) == CUDA_ERROR_INVALID_VALUE);
    CHECK(library.cuMemcpyDtoDAsync(world.device.allocate(8), address, 8, nullptr) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(library.cuMemsetD8(address, 0, 8) == CUDA_ERROR_INVALID_VALUE);
    CHECK(library.cuMemFree(address) == CUDA_ERROR_INVALID_VALUE);
    int ordinal = 0;
    CHECK(library.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(kernels.result_of("read", address) == 77);

    CHECK(kernels.launch("release", address) == CUDA_SUCCESS);
    CHECK(library.cuCtxSynchronize() == CUDA_SUCCESS);
    CHECK(leaks_of(library).empty());
}

TEST_CASE(
    "a second free, a free of other memory and a use after the free are faults that say what the memory is") {
    const struct {
        const char* kernel;
        bool freed, of_the_host;
        std::uint64_t offset;
        CUresult code;
        const char* words;
    } cases[] = {
        {"release", true, false, 0, CUDA_ERROR_LAUNCH_FAILED,
         "inside a freed 8-byte allocation that kernel 'make' made"},
        {"release", false, false, 4, CUDA_ERROR_LAUNCH_FAILED, "at byte 4 of the 8-byte allocation"},
        {"release", false, true, 0, CUDA_ERROR_LAUNCH_FAILED, "no memory of malloc or new begins there"},
        {"read", true, false, 0, CUDA_ERROR_ILLEGAL_ADDRESS,
         "inside a freed 8-byte allocation that kernel 'make' made"},
        {"read", false, false, 8, CUDA_ERROR_ILLEGAL_ADDRESS,
         "directly past the 8-byte allocation that kernel 'make'"},
    };
    for (const auto& each : cases) {
        CAPTURE(each.kernel);
        CAPTURE(each.words);
        Library library;
        World world(library);
        Kernels kernels(world);
        const std::uint64_t address =
            each.of_the_host ? world.device.allocate(8) : kernels.result_of("make", 1);
        if (each.freed) REQUIRE(kernels.launch("release", address) == CUDA_SUCCESS);
        CHECK(kernels.launch(each.kernel, address + each.offset) == CUDA_SUCCESS);
        CHECK(library.cuCtxSynchronize() == each.code);
        CHECK(library.report().find(each.words) != std::string::npos);
    }
}

TEST_CASE("the memory of kernels goes with its context, and with a reset of the device") {
    Library library;
    World world(library);
    const auto reset =
        reinterpret_cast<decltype(&bascule_emulated_reset)>(library.symbol("bascule_emulated_reset"));
    std::uint64_t address = 0;
    Kernels kernels(world);
    address = kernels.result_of("make", 5);
    reset(0);
    CHECK(leaks_of(library).empty());
    Kernels later(world);  // has a new array for results
    CHECK(later.launch("read", address) == CUDA_SUCCESS);
    CHECK(library.cuCtxSynchronize() != CUDA_SUCCESS);
    CHECK(library.report().find("lost when the device was reset") != std::string::npos);
}
