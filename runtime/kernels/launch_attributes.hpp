// Launch attributes: checked against the device before a launch, and converted for the driver.
#pragma once

#include <array>

#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/kernels/library.hpp>

namespace bascule {

/// Storage for all attributes that a LaunchConfig may have; filled by `to_native`.
using LaunchAttributes = std::array<CUlaunchAttribute, 5>;

/// Checks that the device supports the attributes. The context must be current. Throws: ArgumentError that says how
/// many blocks of a cooperative launch fit, or what the device lacks; CudaError.
void check_attributes(const LaunchConfig& config, const LoadedKernel& kernel, Device device);

/// Fills in the attributes of the launch and returns their number.
unsigned int to_native(const LaunchConfig& config, LaunchAttributes& attributes) noexcept;

/// Called when the driver has refused a launch with attributes. Throws: ArgumentError if one of them is the reason.
void explain_refusal(CUresult code, const LaunchConfig& config, const LoadedKernel& kernel);

}  // namespace bascule
