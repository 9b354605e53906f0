#include "child.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <future>
#include <map>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.hpp"

namespace client {
namespace {

/// A device in a process without a test framework: a failed `need` ends the process with exit code 99.
struct Plain {
    Library& api = *new Library;
    CUcontext context = nullptr;
    CUlibrary code = nullptr;
    CUstream stream = nullptr;

    Plain() {
        need(api.initialised == CUDA_SUCCESS);
        need(api.cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
        need(api.cuCtxSetCurrent(context) == CUDA_SUCCESS);
        need(api.cuLibraryLoadData(&code, program, nullptr, nullptr, 0, nullptr, nullptr, 0) == CUDA_SUCCESS);
        need(api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    }
    static void need(bool true_claim) {
        if (!true_claim) _exit(99);
    }
    float* pinned() const {
        void* host = nullptr;
        need(api.cuMemHostAlloc(&host, sizeof(float), 0) == CUDA_SUCCESS);
        return static_cast<float*>(host);
    }
    void launch(const char* name, float* value, CUstream on) const {
        CUkernel kernel = nullptr;
        need(api.cuLibraryGetKernel(&kernel, code, name) == CUDA_SUCCESS);
        auto address = reinterpret_cast<CUdeviceptr>(value);
        void* parameters[] = {&address};
        need(api.cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, on, parameters,
                                nullptr) == CUDA_SUCCESS);
    }
};

/// Ends the process while operations are pending; under the policy `threads`, also while an endless kernel runs.
int exit_with_work() {
    Plain device;
    float* flag = device.pinned();
    *flag = 0.0F;
    if (std::string(std::getenv("BASCULE_EMULATED_SCHEDULE")) == "threads") {
        std::promise<void> begun;
        const auto tell = [](void* data) { static_cast<std::promise<void>*>(data)->set_value(); };
        device.launch("await", flag, device.stream);
        CUstream other = nullptr;
        device.api.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING);
        device.api.cuLaunchHostFunc(other, tell, &begun);
        begun.get_future().wait();  // issued after the kernel, which therefore runs by now, or almost
    }
    device.launch("increment", device.pinned(), device.stream);
    return 0;
}

/// A static object that uses the device after everything else has been destroyed.
struct Late {
    Plain* device = nullptr;
    float* value = nullptr;
    ~Late() {
        if (device == nullptr) return;
        device->launch("increment", value, device->stream);
        const CUresult code = device->api.cuStreamSynchronize(device->stream);
        std::printf("at the end: %d, %g\n", static_cast<int>(code), static_cast<double>(*value));
        std::fflush(stdout);
    }
};
Late late;  // constructed before the device, destroyed after the device has ended its threads

int use_at_exit() {
    late.device = new Plain;
    late.value = late.device->pinned();
    *late.value = 1.0F;
    late.device->launch("increment", late.value, late.device->stream);
    Plain::need(late.device->api.cuStreamSynchronize(late.device->stream) == CUDA_SUCCESS);
    return 0;
}

int exit_in_host_function() {
    Plain device;
    device.api.cuLaunchHostFunc(
        device.stream, [](void*) { std::exit(7); }, nullptr);
    device.api.cuStreamSynchronize(device.stream);
    return 1;  // not reached
}

/// The child of a fork has no device and gets an error; the parent's device still works.
int fork_it() {
    Plain device;
    float* value = device.pinned();
    *value = 0.0F;
    device.launch("increment", value, device.stream);
    const pid_t child = fork();
    if (child == 0) {
        CUdeviceptr address = 0;
        CUcontext context = nullptr;
        const std::array answers = {device.api.cuMemAlloc(&address, 4), device.api.cuInit(0),
                                    device.api.cuStreamSynchronize(device.stream),
                                    device.api.cuDevicePrimaryCtxRetain(&context, 0),
                                    device.api.cuCtxSynchronize()};
        for (const CUresult answer : answers) {
            if (answer != CUDA_ERROR_NOT_INITIALIZED) _exit(1);
        }
        if (device.api.report().find("forked") == std::string::npos) _exit(2);
        std::exit(0);  // runs the exit handlers
    }
    int status = 0;
    waitpid(child, &status, 0);
    Plain::need(device.api.cuStreamSynchronize(device.stream) == CUDA_SUCCESS);
    std::printf("child %d, value %g\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                static_cast<double>(*value));
    return 0;
}

/// A library that is closed while its threads exist stays loaded.
int close_library() {
    Plain device;
    device.launch("increment", device.pinned(), device.stream);
    Plain::need(device.api.cuCtxSynchronize() == CUDA_SUCCESS);
    device.api.close();
    return 0;
}

/// Prints the result of loading a text if memory for its tokens runs out, and whether the device still works.
int run_out_of_memory() {
    Plain device;
    const std::string text = std::string(program) + std::string(std::size_t{16} << 20, ';');
    rlimit before = {};
    getrlimit(RLIMIT_AS, &before);
    rlimit tight = before;
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    tight.rlim_cur = pages * 4096 + (std::size_t{64} << 20);
    setrlimit(RLIMIT_AS, &tight);
    CUlibrary code = nullptr;
    const CUresult answer =
        device.api.cuLibraryLoadData(&code, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    setrlimit(RLIMIT_AS, &before);
    float* value = device.pinned();
    *value = 0.0F;
    device.launch("increment", value, device.stream);
    Plain::need(device.api.cuStreamSynchronize(device.stream) == CUDA_SUCCESS);
    std::printf("loading: %d, value %g\n", static_cast<int>(answer), static_cast<double>(*value));
    return 0;
}

/// Reads one of the parent's handles from the environment.
template <class Handle>
Handle given_handle(const char* variable) {
    Handle handle = {};
    const std::string digits = std::getenv(variable);
    for (std::size_t i = 0; i < sizeof handle; ++i)
        handle.reserved[i] = static_cast<char>(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
    return handle;
}

/// Opens the parent's memory twice, closes it once, adds 1 to each of its floats but the last, and closes it again.
int use_memory_of_parent() {
    Plain device;
    CUdeviceptr memory = 0, again = 0, base = 0;
    std::size_t bytes = 0;
    constexpr unsigned lazily = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS;
    const auto handle = given_handle<CUipcMemHandle>("BASCULE_TEST_MEMORY");
    Plain::need(device.api.cuIpcOpenMemHandle(&memory, handle, 0) == CUDA_ERROR_INVALID_VALUE);
    Plain::need(device.api.cuIpcOpenMemHandle(&memory, handle, lazily) == CUDA_SUCCESS);
    Plain::need(device.api.cuIpcOpenMemHandle(&again, handle, lazily) == CUDA_SUCCESS);
    Plain::need(device.api.cuMemGetAddressRange(&base, &bytes, memory) == CUDA_SUCCESS);
    CUipcMemHandle other = {};
    std::printf("the same %d, bytes %zu, freed %d, exported %d, closed %d", static_cast<int>(again == memory),
                bytes, device.api.cuMemFree(memory), device.api.cuIpcGetMemHandle(&other, memory),
                device.api.cuIpcCloseMemHandle(memory));
    CUkernel kernel = nullptr;
    Plain::need(device.api.cuLibraryGetKernel(&kernel, device.code, "increment") == CUDA_SUCCESS);
    void* parameters[] = {&memory};
    const auto threads = static_cast<unsigned>(bytes / sizeof(float)) - 1;
    Plain::need(device.api.cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, threads, 1, 1, 0,
                                          device.stream, parameters, nullptr) == CUDA_SUCCESS);
    Plain::need(device.api.cuStreamSynchronize(device.stream) == CUDA_SUCCESS);
    float last = 0;
    std::printf(", closed %d", device.api.cuIpcCloseMemHandle(memory));
    std::printf(", closed %d, read %d, freed %d\n", device.api.cuIpcCloseMemHandle(memory),
                device.api.cuMemcpyDtoH(&last, memory, sizeof last), device.api.cuMemFree(memory));
    return 0;
}

CUresult open_memory(const Plain& device, CUdeviceptr& memory) {
    return device.api.cuIpcOpenMemHandle(&memory, given_handle<CUipcMemHandle>("BASCULE_TEST_MEMORY"),
                                         CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}

/// Runs a kernel that waits for a kernel of the parent, which waits for this one.
int meet_parent() {
    Plain device;
    CUdeviceptr memory = 0;
    Plain::need(open_memory(device, memory) == CUDA_SUCCESS);
    device.launch("meet", reinterpret_cast<float*>(memory), device.stream);
    return device.api.cuStreamSynchronize(device.stream) == CUDA_SUCCESS ? 0 : 1;
}

/// Tries to open the parent's memory, and prints the CUresult.
int open_memory_of_parent() {
    Plain device;
    CUdeviceptr memory = 0;
    std::printf("opened %d\n", open_memory(device, memory));
    return 0;
}

/// The parent's event and memory: a flag, a float, and a second flag.
struct Shared {
    Plain device;
    CUdeviceptr memory = 0;
    CUevent event = nullptr;

    Shared() {
        Plain::need(open_memory(device, memory) == CUDA_SUCCESS);
        Plain::need(device.api.cuIpcOpenEventHandle(
                        &event, given_handle<CUipcEventHandle>("BASCULE_TEST_EVENT")) == CUDA_SUCCESS);
    }
    void launch(const char* name, std::size_t word) const {
        device.launch(name, reinterpret_cast<float*>(memory + word * sizeof(float)), device.stream);
    }
    void set(std::size_t word) const {
        const unsigned one = 1;
        Plain::need(device.api.cuMemcpyHtoD(memory + word * sizeof one, &one, sizeof one) == CUDA_SUCCESS);
    }
};

/// Doubles the float after the parent's record, which comes after a kernel that waits for the flag.
int wait_for_parent() {
    const Shared shared;
    const Library& api = shared.device.api;
    const CUresult before = api.cuEventQuery(shared.event);
    Plain::need(api.cuStreamWaitEvent(shared.device.stream, shared.event, 0) == CUDA_SUCCESS);
    shared.launch("twice", 1);
    const CUresult running = api.cuStreamQuery(shared.device.stream);
    shared.set(0);
    Plain::need(api.cuEventSynchronize(shared.event) == CUDA_SUCCESS);
    Plain::need(api.cuStreamSynchronize(shared.device.stream) == CUDA_SUCCESS);
    std::printf("before %d, stream %d, after %d\n", before, running, api.cuEventQuery(shared.event));
    return 0;
}

/// Adds 1 to the float after a kernel that waits for the parent's flag, records, and sets the second flag.
int record_for_parent() {
    const Shared shared;
    const Library& api = shared.device.api;
    shared.launch("await", 0);
    shared.launch("increment", 1);
    Plain::need(api.cuEventRecord(shared.event, shared.device.stream) == CUDA_SUCCESS);
    shared.set(2);
    return api.cuStreamSynchronize(shared.device.stream) == CUDA_SUCCESS ? 0 : 1;
}

const std::map<std::string, int (*)()> roles = {
    {"use memory of the parent", use_memory_of_parent},
    {"meet the parent", meet_parent},
    {"open memory of the parent", open_memory_of_parent},
    {"wait for the parent", wait_for_parent},
    {"record for the parent", record_for_parent},
    {"run out of memory", run_out_of_memory},
    {"exit with work", exit_with_work},
    {"use at exit", use_at_exit},
    {"exit in a host function", exit_in_host_function},
    {"fork", fork_it},
    {"close the library", close_library},
};

}  // namespace

child_process::Result run_child(const std::string& role, const std::string& policy,
                                child_process::Variables variables) {
    variables.emplace_back("BASCULE_EMULATED_SCHEDULE", policy);
    return child_process::run(role, variables);
}

int play(const std::string& role) {
    const auto found = roles.find(role);
    return found == roles.end() ? 98 : found->second();
}

}  // namespace client
