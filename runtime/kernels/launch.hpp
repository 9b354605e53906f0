// The only caller of cuLaunchKernelEx.
#pragma once

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/interface/arguments/launch_config.hpp>
#include <bascule/runtime/kernels/library.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

/// Enqueues one launch, whose geometry was checked. The stream's context is current. Throws: CudaError.
void enqueue(StreamRef stream, const LaunchConfig& config, const LoadedKernel& kernel, ArgumentPack& args);

}  // namespace bascule
