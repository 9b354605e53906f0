// Which of several installed NVRTCs compiles: the newest whose code the driver takes.
#pragma once

#include <string>
#include <vector>

namespace bascule {

/// Major and minor number of a CUDA release. A value.
struct CudaVersion {
    int major = 0;
    int minor = 0;
    auto operator<=>(const CudaVersion&) const = default;
};

/// "13.0".
std::string to_string(CudaVersion version);

/// What the code will be loaded by: a value that its owner hands in, since this layer asks no driver.
struct DriverLimit {
    /// Drivers load machine code of every version of their own major one or an older one. 0.0: no driver is known, and
    /// every NVRTC will do.
    CudaVersion driver{};
    /// It takes PTX alone, which must not be of a newer version than the driver.
    bool only_ptx = false;

    bool operator==(const DriverLimit&) const = default;
    bool accepts(CudaVersion nvrtc) const noexcept;
};

/// The version of the NVRTC in this file, by its name and by that of its builtins beside it: loading one takes its time.
/// 0.0 where these do not tell.
CudaVersion version_of_library(const std::string& path);

/// The libraries of all places in the order in which they are tried: first those that the driver accepts, then those of
/// unknown versions, then the rest, since code for another machine may be what is wanted. Each of these groups keeps the
/// order of the places; within a place the newest comes first, and equal ones stay in order.
std::vector<std::string> by_preference(std::vector<std::vector<std::string>> places,
                                       const DriverLimit& limit);

/// The command that installs an NVRTC with its headers: of this version, or with a negative minor number the newest one of
/// this major version.
std::string pip_command_for(CudaVersion version);

}  // namespace bascule
