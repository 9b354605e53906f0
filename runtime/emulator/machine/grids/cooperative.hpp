// Grids whose blocks wait for each other: all blocks are resident and take turns.
#pragma once

#include "machine/warp.hpp"

namespace emulated::machine {

/// Runs the whole grid with up to `workers` threads, until it ends or faults; the fault is in `grid`. Each block has its
/// own registers and memory, and any thread may continue any block that is not running. Throws: std::bad_alloc.
void run_together(GridState& grid, unsigned workers);

}  // namespace emulated::machine
