// Runs one grid of a kernel until it ends or faults.
#pragma once

#include <optional>

#include "machine/grid.hpp"

namespace emulated::machine {

/// Runs the grid and returns the first fault, or nothing. A fault of the kernel throws no exception. Thread-safe.
std::optional<Fault> launch(const LaunchRequest& request);

}  // namespace emulated::machine
