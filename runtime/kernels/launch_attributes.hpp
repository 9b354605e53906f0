// Launch attributes: checked against the device before a launch, and converted for the driver.
#pragma once

#include <array>

#include <bascule/interface/arguments/launch_config.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/kernels/library.hpp>

namespace bascule {

/// Storage for every attribute that a LaunchConfig has; filled by `to_native`.
using LaunchAttributes = std::array<CUlaunchAttribute, 5>;

/// Whether the device can do what the attributes ask for. The context is current. Throws: ArgumentError that
/// says how many blocks of a cooperative launch fit, or what the device lacks; CudaError.
void check_attributes(const LaunchConfig& config, const LoadedKernel& kernel, Device device);

/// Fills in the attributes that the launch has, and returns their number.
unsigned int to_native(const LaunchConfig& config, LaunchAttributes& attributes) noexcept;

/// The driver refused a launch that has attributes. Throws: ArgumentError where one of them is the reason.
void explain_refusal(CUresult code, const LaunchConfig& config, const LoadedKernel& kernel);

}  // namespace bascule
