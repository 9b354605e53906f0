// Tests that need a separate process: how processes end and fork while a device works.
#pragma once

#include <string>

#include "../child_process.hpp"

namespace client {

/// Runs this program again as `--child=role` under a scheduling policy.
child_process::Result run_child(const std::string& role, const std::string& policy,
                                child_process::Variables variables = {});

/// Called in the child: plays the role and returns the exit code.
int play(const std::string& role);

}  // namespace client
