// Sizes that an assembler for the emulated device's architecture refuses to exceed, in bytes.
#pragma once

#include <cstdint>

namespace emulated::ptx::limits {

inline constexpr std::uint64_t static_shared = 48U * 1024;        ///< of a kernel
inline constexpr std::uint64_t local = 512U * 1024;               ///< of a thread
inline constexpr std::uint64_t constants = 64U * 1024;            ///< of a module
inline constexpr std::uint64_t parameters = 4096;                 ///< of a kernel
inline constexpr std::uint64_t parameters_since_ptx_8_1 = 32764;  ///< the same, for sm_70 and newer

}  // namespace emulated::ptx::limits
