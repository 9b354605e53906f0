// The directories that are searched for headers after the user's own.
#pragma once

#include <array>
#include <string>
#include <vector>

namespace bascule {

/// The existing directories in the order of the search. `given` are the directories of CUDA headers that the user or an
/// installation names. If empty, the headers next to `nvrtc_library` are searched, then those of a toolkit of exactly
/// version `cuda_version` (13050 is 13.5; 0: any version), because others may not compile or may not match the library.
/// Bascule's stand-ins for the standard libraries' headers come before the first directory with CUDA headers, because a
/// toolkit may be installed among the host's own headers. Directories before that are the user's.
std::vector<std::string> header_search_path(const std::vector<std::string>& given,
                                            const std::string& nvrtc_library, int cuda_version = 0);

/// A directory of CUDA headers has at least one of these.
inline constexpr std::array cuda_headers = {"cuda_runtime.h", "cuda_fp16.h", "cub/config.cuh",
                                            "cuda/std/version"};
bool has_cuda_headers(const std::string& directory);

/// The directory in which a toolkit is installed unless a variable names another one.
inline constexpr const char* usual_toolkit_root = "/usr/local/cuda";
/// Where toolkits are looked for: CUDA_HOME, CUDA_PATH, /usr/local/cuda.
std::vector<std::string> toolkit_roots();

}  // namespace bascule
