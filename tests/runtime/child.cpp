#include "child.hpp"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <spawn.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

#include <bascule/interface/error.hpp>
#include <bascule/runtime/driver.hpp>

#include "support.hpp"

extern char** environ;

namespace bascule::testing {
namespace {

std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& variables) {
    std::map<std::string, std::string> all;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string text = *entry;
        const std::size_t equals = text.find('=');
        all[text.substr(0, equals)] = text.substr(equals + 1);
    }
    for (const auto& [name, value] : variables) {
        if (value.empty()) {
            all.erase(name);
        } else {
            all[name] = value;
        }
    }
    std::vector<std::string> lines;
    for (const auto& [name, value] : all) lines.push_back(name + "=" + value);
    return lines;
}

/// Prints what Driver::get gives.
void choose_driver() {
    const Driver& driver = Driver::get();
    std::printf("emulated=%d devices=%d version=%d path=%s reason=%s\n", driver.emulated() ? 1 : 0,
                driver.device_count(), driver.version(), driver.path().c_str(),
                driver.fallback_reason().c_str());
}

/// A kernel that writes past its array, then a second launch after the fault.
void fault() {
    TestModule program("__global__ void past(float* p, int n) { p[threadIdx.x + n] = 1; }");
    const Kernel kernel = program.module.kernel("past");
    const Stream stream;
    DeviceBuffer buffer(1024);
    const auto launch = [&] {
        ArgumentPack args(kernel.signature());
        args.set(0, floats(buffer));
        args.set(1, integer(256));
        kernel.launch(stream, {.grid = {1}, .block = {256}}, args);
        stream.ref().synchronize();
    };
    for (const char* attempt : {"first", "second"}) {
        try {
            launch();
            std::printf("%s: nothing happened\n", attempt);
        } catch (const CudaError& error) {
            std::printf("%s: %s\n", attempt, error.what());
        }
    }
}

}  // namespace

ChildResult run_child(const std::string& role,
                      const std::vector<std::pair<std::string, std::string>>& variables) {
    std::vector<std::string> lines = environment_with(variables);
    std::vector<char*> environment;
    for (std::string& line : lines) environment.push_back(line.data());
    environment.push_back(nullptr);
    std::string program = "/proc/self/exe";
    std::string argument = "--child=" + role;
    char* arguments[] = {program.data(), argument.data(), nullptr};

    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe for a child process");
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
    ChildResult result;
    char buffer[4096];
    for (ssize_t got = 0; failed == 0 && (got = read(ends[0], buffer, sizeof buffer)) > 0;) {
        result.output.append(buffer, static_cast<std::size_t>(got));
    }
    close(ends[0]);
    if (failed != 0) throw std::runtime_error("a child process did not start");
    int status = 0;
    waitpid(process, &status, 0);
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result;
}

int play(const std::string& role) {
    try {
        if (role == "driver") choose_driver();
        if (role == "fault") fault();
        return 0;
    } catch (const LibraryError& error) {
        std::printf("LibraryError: %s\n", error.what());
    } catch (const CudaError& error) {
        std::printf("CudaError %d: %s\n", error.code(), error.what());
    } catch (const Error& error) {
        std::printf("Error: %s\n", error.what());
    }
    return 1;
}

}  // namespace bascule::testing
