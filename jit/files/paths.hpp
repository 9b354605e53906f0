// Paths as strings, and the directories in which files of Bascule are looked for at run time, near the binary that
// contains this code.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace bascule {

/// Empty if the system does not report it.
std::string working_directory();
/// Makes `path` absolute, relative to the working directory.
std::string absolute_path(const std::string& path);

/// The part before the last slash; empty without one.
std::string parent_of(const std::string& path);
std::string join(const std::string& directory, const std::string& name);

/// The variable's value, with a leading `~` replaced by the home directory, because shells do not expand it if an IDE,
/// a service or a Dockerfile sets the variable. Nothing if the variable is not set.
std::optional<std::string> path_from_environment(const char* variable);

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
