// What the emulated device can take: an sm_80's numbers, so that code tuned there behaves the same here.
#pragma once

#include "ptx/limits.hpp"

namespace emulated::driver::limits {

inline constexpr int threads_per_block = 1024;
inline constexpr int block_x = 1024, block_y = 1024, block_z = 64;
inline constexpr int grid_x = 2147483647, grid_y = 65535, grid_z = 65535;
inline constexpr int shared_per_block = ptx::limits::static_shared;
inline constexpr int shared_per_block_optin = 166912;     // 163 KB
inline constexpr int shared_per_multiprocessor = 167936;  // 164 KB
inline constexpr int shared_reserved_per_block = 1024;    // the system's own
inline constexpr int shared_granularity = 128;
inline constexpr int warp = 32;
inline constexpr int schedulers = 4;  // of a multiprocessor; each runs a quarter of the warps
inline constexpr int registers_per_multiprocessor = 65536;
inline constexpr int registers_per_thread = 255;
inline constexpr int fewest_registers = 8;
inline constexpr int registers_step = 8;          // what assemblers round bounds down to
inline constexpr int register_granularity = 256;  // of what a warp gets
inline constexpr int threads_per_multiprocessor = 2048;
inline constexpr int blocks_per_multiprocessor = 32;
inline constexpr int multiprocessors = 8;

}  // namespace emulated::driver::limits
