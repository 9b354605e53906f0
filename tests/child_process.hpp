// Runs the test program again as a child process that plays a role.
#pragma once

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <poll.h>
#include <spawn.h>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

extern char** environ;

namespace child_process {

struct Result {
    /// 128 plus the signal's number if a signal ended it; -1 if it was killed after a minute.
    int exit_code = -1;
    std::string output;  ///< of stdout and stderr
    bool says(const std::string& text) const { return output.find(text) != std::string::npos; }
};

using Variables = std::vector<std::pair<std::string, std::string>>;

/// The environment of this process with these variables; an empty value removes one.
inline std::vector<std::string> environment_with(const Variables& variables) {
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

/// Appends the output of a pipe until its other end is closed; returns false if that takes longer than a minute.
inline bool read_to_the_end(int pipe, std::string& output) {
    using namespace std::chrono;
    const auto deadline = steady_clock::now() + minutes(1);
    for (;;) {
        const auto left = duration_cast<milliseconds>(deadline - steady_clock::now()).count();
        pollfd waiting{pipe, POLLIN, 0};
        const int ready = left > 0 ? poll(&waiting, 1, static_cast<int>(left)) : 0;
        if (ready == 0) return false;
        std::array<char, 4096> buffer;
        const ssize_t got = read(pipe, buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return true;
        output.append(buffer.data(), static_cast<std::size_t>(got));
    }
}

/// Runs this program again as `--child=role`.
inline Result run(const std::string& role, const Variables& variables) {
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
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    pid_t process = 0;
    const int failed =
        posix_spawn(&process, program.c_str(), &actions, nullptr, arguments, environment.data());
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    Result result;
    const bool ended = failed == 0 && read_to_the_end(ends[0], result.output);
    close(ends[0]);
    if (failed != 0) throw std::runtime_error("a child process did not start");
    if (!ended) kill(process, SIGKILL);
    int status = 0;
    waitpid(process, &status, 0);
    if (ended) result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result;
}

}  // namespace child_process
