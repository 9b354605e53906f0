// The limits of the emulated architectures, so that code tuned for one behaves the same here. Source: the CUDA C++
// Programming Guide, "Technical Specifications per Compute Capability".
#pragma once

#include <algorithm>

#include "ptx/limits.hpp"

namespace emulated::driver::limits {

inline constexpr int threads_per_block = 1024;
inline constexpr int block_x = 1024, block_y = 1024, block_z = 64;
inline constexpr int grid_x = 2147483647, grid_y = 65535, grid_z = 65535;
inline constexpr int shared_per_block = ptx::limits::static_shared;
inline constexpr int warp = 32;
inline constexpr int schedulers = 4;  // per SM; each runs a quarter of the warps
inline constexpr int registers_per_multiprocessor = 65536;
inline constexpr int registers_per_thread = 255;
inline constexpr int fewest_registers = 8;
inline constexpr int registers_step = 8;          // assemblers round bounds down to a multiple of this
inline constexpr int register_granularity = 256;  // registers are allocated per warp in multiples of this
inline constexpr int multiprocessors = 8;
inline constexpr int portable_cluster_blocks = 8;

/// Limits that differ between architectures. Sizes of shared memory are in bytes.
struct Architecture {
    int number;  ///< 80 for sm_80
    int threads_per_multiprocessor, blocks_per_multiprocessor;
    int shared_per_multiprocessor, shared_per_block_optin;
    int shared_reserved_per_block;  ///< used by the system
    int shared_granularity;
    unsigned parameters_at;  ///< offset of kernel parameters in constant memory, from machine code
    bool clusters;
    int single_to_double;  ///< operations per second in single precision, for each in double precision
};

inline constexpr Architecture architectures[] = {
    {75, 1024, 16, 64 * 1024, 64 * 1024, 0, 256, 0x160, false, 32},
    {80, 2048, 32, 164 * 1024, 163 * 1024, 1024, 128, 0x160, false, 2},
    {86, 1536, 16, 100 * 1024, 99 * 1024, 1024, 128, 0x160, false, 32},
    {89, 1536, 24, 100 * 1024, 99 * 1024, 1024, 128, 0x160, false, 64},
    {90, 2048, 32, 228 * 1024, 227 * 1024, 1024, 128, 0x210, true, 2},
};

/// `number` must be in the table above.
constexpr const Architecture& architecture(int number) noexcept {
    return *std::ranges::find(architectures, number, &Architecture::number);
}

// Textures and surfaces. Extents are in texels and do not include layers.
inline constexpr int texture_alignment = 512;       // of addresses
inline constexpr int texture_pitch_alignment = 32;  // of row pitches
inline constexpr int texture_linear_width = 1 << 28;
inline constexpr int texture_pitched_width = 131072, texture_pitched_height = 65000;
inline constexpr int texture_pitched_pitch = 2097120;  // bytes
inline constexpr int array_1d_width = 131072, array_1d_layered_width = 32768;
inline constexpr int array_2d_width = 131072, array_2d_height = 65536;
inline constexpr int array_mipmapped = 32768;  // width and height, of one and two dimensions
inline constexpr int array_2d_small = 32768;   // width and height with layers or for gathers; a cube's edge
inline constexpr int array_3d = 16384;         // width, height and depth
inline constexpr int array_layers = 2048, array_cube_layers = 2046;
inline constexpr int surface_1d_width = 32768;

}  // namespace emulated::driver::limits
