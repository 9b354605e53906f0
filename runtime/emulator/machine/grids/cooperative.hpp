// Grids whose blocks wait for each other: all of them are kept, and take turns.
#pragma once

#include "machine/warp.hpp"

namespace emulated::machine {

/// Runs the whole grid with up to `workers` threads, or until its first fault, which is in `grid` then. Each
/// block has registers and memory of its own, and any thread goes on with any block that is not running.
/// Throws: std::bad_alloc.
void run_together(GridState& grid, unsigned workers);

}  // namespace emulated::machine
