// Chooses one of several installed NVRTCs: the newest whose code the driver accepts.
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

/// The driver that will load the code. The caller passes it in, because this layer calls no driver.
struct DriverLimit {
    /// Drivers load machine code of their own major version and of older ones. 0.0: the driver is not known, and
    /// accepts all NVRTCs.
    CudaVersion driver{};
    /// It accepts only PTX, and only of versions up to its own.
    bool only_ptx = false;

    bool operator==(const DriverLimit&) const = default;
    bool accepts(CudaVersion nvrtc) const noexcept;
};

/// The version of the NVRTC in this file, from its name and that of its builtins in the same directory, because loading
/// it is slow. 0.0 if the names do not contain it.
CudaVersion version_of_library(const std::string& path);

/// The libraries of all places in the order in which they are tried: those that the driver accepts, then those of
/// unknown versions, then the rest, because code for another machine may be wanted. Within each group the places keep
/// their order; within a place the newest library comes first, and equal versions keep their order.
std::vector<std::string> by_preference(std::vector<std::vector<std::string>> places,
                                       const DriverLimit& limit);

/// The command that installs an NVRTC with its headers: this version, or the newest one of the major version if the
/// minor number is negative.
std::string pip_command_for(CudaVersion version);

}  // namespace bascule
