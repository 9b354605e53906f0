// What a test needs a process of its own for: the choice of a driver, and faults, which end a context.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace bascule::testing {

/// What a process printed, and how it ended.
struct ChildResult {
    std::string output;
    int exit_code = -1;
    bool says(const std::string& text) const { return output.find(text) != std::string::npos; }
};

/// Runs this program again as `--child=role` with these variables added to the environment (an empty value
/// takes one away).
ChildResult run_child(const std::string& role,
                      const std::vector<std::pair<std::string, std::string>>& variables = {});

/// The other end: plays the role and returns the exit code.
int play(const std::string& role);

}  // namespace bascule::testing
