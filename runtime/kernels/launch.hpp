// One launch: orders it with the producers' streams, calls cuLaunchKernelEx, and keeps the owners.
#pragma once

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/runtime/faults/launch_history.hpp>
#include <bascule/runtime/kernels/library.hpp>
#include <bascule/runtime/lifetime/lifetime.hpp>

namespace bascule {

/// A loaded kernel with a checked configuration: everything about a launch except its arguments and its stream. A
/// value; borrows the kernel.
class LaunchTarget {
  public:
    /// Throws: ArgumentError for geometry and attributes that the kernel or the device does not support; CudaError.
    LaunchTarget(const LoadedKernel& kernel, Device device, const LaunchConfig& config);

    const LoadedKernel& kernel() const noexcept { return *kernel_; }
    const LaunchConfig& config() const noexcept { return config_; }
    bool has_attributes() const noexcept { return has_attributes_; }
    CUctx_st* context() const noexcept { return context_; }

  private:
    const LoadedKernel* kernel_;
    LaunchConfig config_;
    bool has_attributes_;
    CUctx_st* context_;
};

/// Waits for the producers, launches, makes the producers wait for the launch, and keeps the owners and the code until it is
/// done, or with the graph that captures it. `args` must have been checked, including structures. `owners` are taken even if
/// this throws. Throws: ArgumentError before the first operation; CudaError. `site` is for reports of faults.
void launch(const LaunchTarget& target, StreamRef stream, ArgumentPack& args, const Owners& owners,
            LaunchSite site);

}  // namespace bascule
