#include "child.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <map>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "client.hpp"

extern char** environ;

namespace client {
namespace {

constexpr std::chrono::seconds patience{60};

/// A device in a process without a test around it: whatever fails ends the process with a code of its own.
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

/// Ends while operations wait that nobody waits for, and one that never ends where something runs by itself.
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
        begun.get_future().wait();  // was issued later, so the kernel is running by now, or as good as
    }
    device.launch("increment", device.pinned(), device.stream);
    return 0;
}

/// A static object of the program that uses the device when everything else is over.
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
Late late;  // made before the device, destroyed after the device has ended its threads

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

/// The child of a fork has no device and is told so; the parent's goes on.
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
        std::exit(0);  // with what is left to do at exit
    }
    int status = 0;
    waitpid(child, &status, 0);
    Plain::need(device.api.cuStreamSynchronize(device.stream) == CUDA_SUCCESS);
    std::printf("child %d, value %g\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                static_cast<double>(*value));
    return 0;
}

/// A library that is closed while its threads are there keeps its code.
int close_library() {
    Plain device;
    device.launch("increment", device.pinned(), device.stream);
    Plain::need(device.api.cuCtxSynchronize() == CUDA_SUCCESS);
    device.api.close();
    return 0;
}

const std::map<std::string, int (*)()> roles = {
    {"exit with work", exit_with_work},
    {"use at exit", use_at_exit},
    {"exit in a host function", exit_in_host_function},
    {"fork", fork_it},
    {"close the library", close_library},
};

}  // namespace

ChildResult run_child(const std::string& role, const std::string& policy) {
    const std::string variable = "BASCULE_EMULATED_SCHEDULE=" + policy;
    std::vector<char*> environment;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        if (std::string(*entry).rfind("BASCULE_EMULATED_SCHEDULE=", 0) != 0) environment.push_back(*entry);
    }
    environment.push_back(const_cast<char*>(variable.c_str()));
    environment.push_back(nullptr);
    std::string program = "/proc/self/exe";
    std::string argument = "--child=" + role;
    char* arguments[] = {program.data(), argument.data(), nullptr};

    int ends[2];
    ChildResult result;
    if (pipe(ends) != 0) return result;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    pid_t process = 0;
    const int failed =
        posix_spawn(&process, program.c_str(), &actions, nullptr, arguments, environment.data());
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (failed != 0) return result;
    std::thread reader([&] {
        std::array<char, 4096> buffer;
        for (ssize_t got = 0; (got = read(ends[0], buffer.data(), buffer.size())) > 0;)
            result.output.append(buffer.data(), static_cast<std::size_t>(got));
    });
    int status = 0;
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (waitpid(process, &status, WNOHANG) == 0) {
        if (std::chrono::steady_clock::now() > deadline) {
            kill(process, SIGKILL);
            waitpid(process, &status, 0);
            reader.join();
            close(ends[0]);
            return result;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    reader.join();
    close(ends[0]);
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result;
}

int play(const std::string& role) {
    const auto found = roles.find(role);
    return found == roles.end() ? 98 : found->second();
}

}  // namespace client
