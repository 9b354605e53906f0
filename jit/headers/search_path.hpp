// The directories that are searched for headers after the user's own.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace bascule {

/// The directories that exist, in the order in which they are searched. `given` are the CUDA headers that the user
/// or an installation names; when empty, those beside `nvrtc_library`, then those of a toolkit of exactly its version,
/// `cuda_version` as cuda.h writes it (13050 is 13.5; 0: of any): other headers may not compile, or say something else than the library means. Bascule's stand-ins for
/// the C and C++ standard libraries' headers come before the first directory of CUDA headers: a toolkit may be
/// installed among the host's own headers. What is named before it is the user's, and wins over the stand-ins.
std::vector<std::string> header_search_path(const std::vector<std::string>& given,
                                            const std::string& nvrtc_library, int cuda_version = 0);

/// Headers of which a directory of CUDA's headers has at least one.
inline constexpr std::array cuda_headers = {"cuda_runtime.h", "cuda_fp16.h", "cub/config.cuh",
                                            "cuda/std/version"};
bool has_cuda_headers(const std::string& directory);

/// Whether this is the directory of Bascule's stand-ins, by its name.
bool is_host_headers(std::string_view directory) noexcept;

/// The directory in which a toolkit is installed unless a variable names another one.
inline constexpr const char* usual_toolkit_root = "/usr/local/cuda";
/// Where toolkits are looked for: CUDA_HOME, CUDA_PATH, /usr/local/cuda.
std::vector<std::string> toolkit_roots();

}  // namespace bascule
