// The one call that launches.
#include <fmt/format.h>

#include <bascule/runtime/driver.hpp>
#include <bascule/runtime/launch.hpp>

namespace bascule {

void enqueue(StreamRef stream, const LaunchConfig& config, const LoadedKernel& kernel, ArgumentPack& args) {
    CUlaunchAttribute attribute;
    CUlaunchConfig launch;
    launch.gridDimX = config.grid.x;
    launch.gridDimY = config.grid.y;
    launch.gridDimZ = config.grid.z;
    launch.blockDimX = config.block.x;
    launch.blockDimY = config.block.y;
    launch.blockDimZ = config.block.z;
    launch.sharedMemBytes = config.shared_bytes;
    launch.hStream = stream.native();
    launch.attrs = &attribute;
    launch.numAttrs = 0;
    if (config.cooperative) {
        attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        attribute.value.cooperative = 1;
        launch.numAttrs = 1;
    }
    const Driver& driver = Driver::get();
    // A CUkernel is a CUfunction of whichever context is current.
    const CUresult code = driver.api().cuLaunchKernelEx(&launch, reinterpret_cast<CUfunction>(kernel.native),
                                                        args.table(), nullptr);
    if (code != CUDA_SUCCESS) [[unlikely]] {
        driver.check(code, "cuLaunchKernelEx", fmt::format("launching kernel '{}'", kernel.image->name));
    }
}

}  // namespace bascule
