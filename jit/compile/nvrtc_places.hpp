// The places in which NVRTC is looked for when the program names no library.
#pragma once

#include <string>
#include <vector>

namespace bascule {

/// One place, and the NVRTCs that are there.
struct NvrtcPlace {
    std::string description;             ///< for messages: "CUDA_HOME (not set)"
    std::vector<std::string> libraries;  ///< paths, or names for the loader; empty where there is none
};

/// All places, in the order in which they are asked: CUDA_HOME and CUDA_PATH, the active environment (VIRTUAL_ENV,
/// CONDA_PREFIX), the program's own directories, the usual place of a toolkit, the loader. Reads the environment and
/// directories, and loads nothing.
std::vector<NvrtcPlace> nvrtc_places();

/// The NVRTCs of toolkits and of the loader alone, for Python, which knows its own environment. A toolkit without NVRTC
/// gives the path at which it was expected, so that an error can name it.
std::vector<std::string> toolkit_nvrtc_libraries();

/// Sentences for the error when no place has an NVRTC: they list the places with what is in each, and say what to do.
std::string advice_without_nvrtc(const std::vector<NvrtcPlace>& places);

}  // namespace bascule
