// Finds the NVRTCs of this machine, and decides between them by the driver that will load the code.
#pragma once

#include <string>
#include <vector>

namespace bascule {

/// Major and minor number of a CUDA release. A value type.
struct CudaVersion {
    int major = 0;
    int minor = 0;
    auto operator<=>(const CudaVersion&) const = default;
};

/// "13.0".
std::string to_string(CudaVersion version);

/// The driver that will load the code. The caller passes it in, because this layer calls no driver.
struct DriverLimit {
    /// Drivers load machine code of their own major version and of older ones. 0.0: the driver is not known, and all
    /// NVRTCs are accepted.
    CudaVersion driver{};
    /// It accepts only PTX, and only of versions up to its own.
    bool only_ptx = false;

    bool operator==(const DriverLimit&) const = default;
    bool accepts(CudaVersion nvrtc) const noexcept;
};

/// The version of the NVRTC in this file, from its name and that of its builtins in the same directory, because loading
/// it is slow. 0.0 if the names do not contain it.
CudaVersion version_of_library(const std::string& path);

/// The libraries of all places in the order in which they are tried: those from 12.0 on that the driver accepts, then
/// those of unknown versions, then the rest, because code for another machine may be wanted. Within each group the
/// places keep their order; within a place the newest library comes first, and equal versions keep their order.
std::vector<std::string> by_preference(std::vector<std::vector<std::string>> places,
                                       const DriverLimit& limit);

/// The command that installs an NVRTC with its headers: this version, or the newest one of the major version if the
/// minor number is negative.
std::string pip_command_for(CudaVersion version);

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
