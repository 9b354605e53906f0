// The one call that launches.
#include <fmt/format.h>

#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/kernels/launch.hpp>
#include <bascule/runtime/kernels/launch_attributes.hpp>

namespace bascule {

void enqueue(StreamRef stream, const LaunchConfig& config, const LoadedKernel& kernel, ArgumentPack& args) {
    LaunchAttributes attributes;
    CUlaunchConfig launch;
    launch.gridDimX = config.grid.x;
    launch.gridDimY = config.grid.y;
    launch.gridDimZ = config.grid.z;
    launch.blockDimX = config.block.x;
    launch.blockDimY = config.block.y;
    launch.blockDimZ = config.block.z;
    launch.sharedMemBytes = config.shared_bytes;
    launch.hStream = stream.native();
    launch.attrs = attributes.data();
    launch.numAttrs = config.has_attributes() ? to_native(config, attributes) : 0;
    const Driver& driver = Driver::get();
    // A CUkernel may be passed as a CUfunction: of the current context.
    const DriverResult code = driver.api().cuLaunchKernelEx(
        &launch, reinterpret_cast<CUfunction>(kernel.native), args.table(), nullptr);
    if (code != CUDA_SUCCESS) [[unlikely]] {
        if (config.has_attributes()) explain_refusal(code, config, kernel);
        driver.check(code, stream.native(), fmt::format("launching kernel '{}'", kernel.image->name));
    }
}

}  // namespace bascule
