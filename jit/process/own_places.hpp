// The directories in which files of Bascule are looked for at run time, near the binary that contains this code.
#pragma once

#include <filesystem>
#include <vector>

namespace bascule {

/// The directory of a CUDA toolkit for this processor, in `targets/`.
#if defined(__aarch64__)
inline constexpr const char* toolkit_target = "sbsa-linux";
#else
inline constexpr const char* toolkit_target = "x86_64-linux";
#endif

/// The directory of the program or shared library that contains this code, the lib directories next to it, and the
/// directories of its RUNPATH; empty if the system does not report them. Never throws.
std::vector<std::filesystem::path> own_places();

}  // namespace bascule
