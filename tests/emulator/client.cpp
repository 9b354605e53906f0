#include "client.hpp"

#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <optional>
#include <unistd.h>

#include <doctest/doctest.h>

namespace client {
namespace {

/// Copies the library's file, so that the loader also makes a copy of its state.
std::filesystem::path copy_of_library() {
    static std::atomic<int> number{0};
    const std::filesystem::path copy =
        std::filesystem::temp_directory_path() /
        ("bascule_emulator_" + std::to_string(getpid()) + "_" + std::to_string(number++) + ".so");
    std::filesystem::copy_file(EMULATOR_LIBRARY, copy, std::filesystem::copy_options::overwrite_existing);
    return copy;
}

/// Sets environment variables while a library reads them.
class Variables {
  public:
    explicit Variables(const Library::Environment& environment) {
        // The default is the policy that runs the least by itself and so reveals the most errors.
        if (std::getenv("BASCULE_EMULATED_SCHEDULE") == nullptr) set("BASCULE_EMULATED_SCHEDULE", "lazy");
        for (const auto& [name, value] : environment) set(name, value);
    }
    ~Variables() {
        for (auto before = before_.rbegin(); before != before_.rend(); ++before) {
            if (before->second) {
                setenv(before->first, before->second->c_str(), 1);
            } else {
                unsetenv(before->first);
            }
        }
    }
    Variables(const Variables&) = delete;
    Variables& operator=(const Variables&) = delete;

  private:
    void set(const char* name, const char* value) {
        const char* before = std::getenv(name);
        before_.emplace_back(name, before == nullptr ? std::nullopt : std::optional<std::string>(before));
        setenv(name, value, 1);
    }
    std::vector<std::pair<const char*, std::optional<std::string>>> before_;
};

}  // namespace

Library::Library(const Environment& environment) {
    const Variables variables(environment);
    const std::filesystem::path file = copy_of_library();
    handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    REQUIRE_MESSAGE(handle_ != nullptr, dlerror());
    std::filesystem::remove(file);

    get_proc_address = reinterpret_cast<PFN_cuGetProcAddress_v12000>(symbol("cuGetProcAddress_v2"));
    const bool exported = get_proc_address != nullptr;
    REQUIRE(exported);
#define CLIENT_RESOLVE(name, version)                                                                \
    {                                                                                                \
        void* function = nullptr;                                                                    \
        CUdriverProcAddressQueryResult result{};                                                     \
        const CUresult code =                                                                        \
            get_proc_address(#name, &function, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &result); \
        REQUIRE_MESSAGE(code == CUDA_SUCCESS, #name);                                                \
        name = reinterpret_cast<PFN_##name##_v##version>(function);                                  \
    }
    CLIENT_FUNCTIONS(CLIENT_RESOLVE)
#undef CLIENT_RESOLVE
    abi = reinterpret_cast<decltype(abi)>(symbol("bascule_emulated_abi"));
    trace = reinterpret_cast<decltype(trace)>(symbol("bascule_emulated_trace"));
    trace_read = reinterpret_cast<decltype(trace_read)>(symbol("bascule_emulated_trace_read"));
    name_allocation = reinterpret_cast<decltype(name_allocation)>(symbol("bascule_emulated_name_allocation"));
    call_count = reinterpret_cast<decltype(call_count)>(symbol("bascule_emulated_call_count"));
    last_fault = reinterpret_cast<decltype(last_fault)>(symbol("bascule_emulated_last_fault"));
    next_site = reinterpret_cast<decltype(next_site)>(symbol("bascule_emulated_next_site"));
    last_report_ = reinterpret_cast<decltype(last_report_)>(symbol("bascule_emulated_last_report"));

    initialised = cuInit(0);
}

std::string Library::report() const {
    std::string text(last_report_(nullptr, 0), '\0');
    last_report_(text.data(), text.size() + 1);
    return text;
}

std::vector<BasculeEmulatedOperation> Library::operations() const {
    std::vector<BasculeEmulatedOperation> operations(trace_read(nullptr, 0));
    trace_read(operations.data(), operations.size());
    return operations;
}

void* Library::symbol(const char* name) const { return dlsym(handle_, name); }

void Library::close() { dlclose(handle_); }

Device::Device()
    : Device([]() -> Library& {
          static Library& shared = *new Library;
          return shared;
      }()) {}

Device::Device(Library& library) : api(library) {
    REQUIRE(api.initialised == CUDA_SUCCESS);
    CUcontext context = nullptr;
    REQUIRE(api.cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    REQUIRE(api.cuCtxPushCurrent(context) == CUDA_SUCCESS);
    REQUIRE(api.cuLibraryLoadData(&program_, program, nullptr, nullptr, 0, nullptr, nullptr, 0) ==
            CUDA_SUCCESS);
}

// Ignores errors, because a test may have broken the context on purpose.
Device::~Device() {
    for (const CUstream stream : streams_) api.cuStreamDestroy(stream);
    for (const CUevent event : events_) api.cuEventDestroy(event);
    for (const CUdeviceptr address : memory_) api.cuMemFree(address);
    api.cuLibraryUnload(program_);
    api.cuCtxPopCurrent(nullptr);
    api.cuDevicePrimaryCtxRelease(0);
}

CUdeviceptr Device::allocate(std::size_t bytes) {
    CUdeviceptr address = 0;
    REQUIRE(api.cuMemAlloc(&address, bytes) == CUDA_SUCCESS);
    memory_.push_back(address);
    return address;
}

CUdeviceptr Device::floats(std::size_t count, float value) {
    const CUdeviceptr address = allocate(count * sizeof value);
    const std::vector<float> values(count, value);
    REQUIRE(api.cuMemcpyHtoD(address, values.data(), count * sizeof value) == CUDA_SUCCESS);
    return address;
}

float Device::read(CUdeviceptr address) {
    float value = 0;
    REQUIRE(api.cuMemcpyDtoH(&value, address, sizeof value) == CUDA_SUCCESS);
    return value;
}

CUstream Device::stream(unsigned flags) {
    CUstream stream = nullptr;
    REQUIRE(api.cuStreamCreate(&stream, flags) == CUDA_SUCCESS);
    streams_.push_back(stream);
    return stream;
}

CUevent Device::event() {
    CUevent event = nullptr;
    REQUIRE(api.cuEventCreate(&event, CU_EVENT_DEFAULT) == CUDA_SUCCESS);
    events_.push_back(event);
    return event;
}

CUfunction Device::kernel(const char* name) {
    CUkernel kernel = nullptr;
    REQUIRE(api.cuLibraryGetKernel(&kernel, program_, name) == CUDA_SUCCESS);
    return reinterpret_cast<CUfunction>(kernel);
}

CUresult Device::launch(const char* name, CUstream stream, CUdeviceptr address, unsigned blocks,
                        unsigned threads) {
    void* parameters[] = {&address};
    return api.cuLaunchKernel(kernel(name), blocks, 1, 1, threads, 1, 1, 0, stream, parameters, nullptr);
}

const char* const program = R"(
.version 8.0
.target sm_80
.address_size 64

.visible .global .align 4 .u32 counter = 7;
.visible .const .align 8 .b8 table[64];

.visible .entry increment(.param .u64 increment_param_0)
{
    .reg .f32 %f<3>;
    .reg .b32 %r<5>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [increment_param_0];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.s32 %rd3, %r4, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.f32 %f1, [%rd4];
    add.f32 %f2, %f1, 0f3F800000;
    st.global.f32 [%rd4], %f2;
    ret;
}

.visible .entry twice(.param .u64 twice_param_0)
{
    .reg .f32 %f<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [twice_param_0];
    cvta.to.global.u64 %rd2, %rd1;
    ld.global.f32 %f1, [%rd2];
    add.f32 %f2, %f1, %f1;
    st.global.f32 [%rd2], %f2;
    ret;
}

.visible .entry trap(.param .u64 trap_param_0)
{
    trap;
    ret;
}

.visible .entry await(.param .u64 await_param_0)
{
    .reg .pred %p<2>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [await_param_0];
    cvta.to.global.u64 %rd2, %rd1;
$again:
    atom.global.add.u32 %r1, [%rd2], 0;
    setp.eq.s32 %p1, %r1, 0;
    @%p1 bra $again;
    ret;
}

.visible .entry raise(.param .u64 raise_param_0)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [raise_param_0];
    cvta.to.global.u64 %rd2, %rd1;
    atom.global.add.u32 %r1, [%rd2], 1;
    ret;
}

.visible .entry meet(.param .u64 meet_param_0)
{
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [meet_param_0];
    cvta.to.global.u64 %rd2, %rd1;
    ld.global.u32 %r2, [%rd2+4];
    atom.global.add.u32 %r1, [%rd2], 1;
$missing:
    atom.global.add.u32 %r1, [%rd2], 0;
    setp.lt.u32 %p1, %r1, %r2;
    @%p1 bra $missing;
    ret;
}

.visible .entry refused(.param .u64 refused_param_0)
{
    .reg .b32 %r<3>;
    mov.u32 %r1, 1;
    frobnicate.sync.u32 %r2, %r1;
    ret;
}
)";

}  // namespace client
