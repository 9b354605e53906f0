// Runs one grid of a kernel until it ends or faults.
#pragma once

#include <optional>

#include "machine/grid.hpp"

namespace emulated::machine {

/// Returns the first fault, or nothing. A faulting kernel causes no exception. Thread-safe.
std::optional<Fault> launch(const LaunchRequest& request);

}  // namespace emulated::machine
