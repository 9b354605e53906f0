// The places where NVRTC is looked for when the program names no library.
#pragma once

#include <string>
#include <vector>

namespace bascule {

/// One place, and the NVRTCs that are there.
struct NvrtcPlace {
    std::string description;             ///< for messages: "CUDA_HOME (not set)"
    std::vector<std::string> libraries;  ///< paths, or names for the loader; empty if there are none
};

/// All places, in the order in which they are searched: CUDA_HOME and CUDA_PATH, the active environment (VIRTUAL_ENV,
/// CONDA_PREFIX), the program's own directories, the usual toolkit directory, the loader. Loads nothing.
std::vector<NvrtcPlace> nvrtc_places();

/// The NVRTCs of toolkits and of the loader only, for Python, which searches its own environment. For a toolkit without
/// NVRTC it returns the expected path, so that an error can name it.
std::vector<std::string> toolkit_nvrtc_libraries();

/// Sentences for the error when no place has an NVRTC: they list the places with their contents, and suggest a fix.
std::string advice_without_nvrtc(const std::vector<NvrtcPlace>& places);

}  // namespace bascule
