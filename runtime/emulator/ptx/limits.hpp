// Limits of an assembler for the emulated device's architecture, and the shared memory that CUDA reserves, in bytes.
#pragma once

#include <cstdint>

namespace emulated::ptx::limits {

inline constexpr std::uint64_t static_shared = std::uint64_t{48} * 1024;  ///< per kernel
inline constexpr std::uint32_t reserved_shared_per_block = 1024;
inline constexpr std::uint64_t local = std::uint64_t{512} * 1024;     ///< per thread
inline constexpr std::uint64_t constants = std::uint64_t{64} * 1024;  ///< per module
inline constexpr std::uint64_t parameters = 4096;                     ///< per kernel
inline constexpr std::uint64_t parameters_since_ptx_8_1 = 32764;      ///< per kernel, for sm_70 and newer

}  // namespace emulated::ptx::limits
