// Tests that need a separate process: the choice of a driver, and faults, which end a context.
#pragma once

#include <string>

#include "../child_process.hpp"

namespace bascule::testing {

using ChildResult = child_process::Result;

/// Runs this program again as `--child=role` with these variables added to the environment; an empty value removes one.
inline ChildResult run_child(const std::string& role, const child_process::Variables& variables = {}) {
    return child_process::run(role, variables);
}

/// Called in the child: plays the role and returns the exit code.
int play(const std::string& role);

}  // namespace bascule::testing
