// What a test needs a process of its own for: how processes end and fork while a device works.
#pragma once

#include <string>

namespace client {

/// How this program, run again as `--child=role`, ended: its exit code, or 128 and the signal's number; -1
/// when it did not end in time. What it printed is in `output`.
struct ChildResult {
    int code = -1;
    std::string output;
};
ChildResult run_child(const std::string& role, const std::string& policy);

/// The other end: plays the role and returns the exit code.
int play(const std::string& role);

}  // namespace client
