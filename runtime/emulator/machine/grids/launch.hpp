// Runs one grid of a kernel to its end, or to its first fault.
#pragma once

#include <optional>

#include "machine/grid.hpp"

namespace emulated::machine {

/// Runs the grid. Returns the first fault, or nothing. Never throws on behalf of a kernel. Thread-safe.
std::optional<Fault> launch(const LaunchRequest& request);

}  // namespace emulated::machine
