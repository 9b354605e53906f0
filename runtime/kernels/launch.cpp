// The story of one launch, from checked arguments to the driver. From Python, what comes before it is
// python/bindings/launch/prepared_launch.cpp.
#include <atomic>

#include <fmt/format.h>

#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/kernels/launch.hpp>
#include <bascule/runtime/kernels/launch_attributes.hpp>
#include <bascule/runtime/streams/capture.hpp>
#include <bascule/runtime/streams/ordering.hpp>

namespace bascule {
namespace {

/// The only call of cuLaunchKernelEx. The stream's context is current. Throws: CudaError.
void enqueue(const LaunchTarget& target, StreamRef stream, ArgumentPack& args) {
    const LaunchConfig& config = target.config();
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
    launch.numAttrs = target.has_attributes() ? to_native(config, attributes) : 0;
    const Driver& driver = Driver::get();
    // A CUkernel may be passed as a CUfunction: of the current context.
    auto* const function = reinterpret_cast<CUfunction>(target.kernel().native);
    const DriverResult code = driver.api().cuLaunchKernelEx(&launch, function, args.table(), nullptr);
    if (code != CUDA_SUCCESS) [[unlikely]] {
        if (target.has_attributes()) explain_refusal(code, config, target.kernel());
        driver.check(code, stream.native(),
                     fmt::format("launching kernel '{}'", target.kernel().image->name));
    }
}

}  // namespace

void launch(const LaunchTarget& target, StreamRef stream, ArgumentPack& args, const Owners& owners,
            LaunchSite site) {
    ThreadMemory& memory = thread_memory;
    const OwnersKept kept(stream, owners, memory);
    const ContextGuard context(target.context());
    const ProducersToOrder producers(stream, args.producers(), &args.signature());  // captures: rule 13
    const std::span others = producers.get();
    if (!others.empty()) wait_for_producers(stream, others);  // cuEventRecord and cuStreamWaitEvent for each
    const LaunchNote note(memory, site);
    enqueue(target, stream, args);               // cuLaunchKernelEx
    note.accept(target.kernel().names, stream);  // whom to ask when something is lost
    if (synchronise_launches.load(std::memory_order_relaxed)) [[unlikely]]
        wait_for_suspect(target.kernel(), stream, site, args);   // before any other call is told of its fault
    if (!others.empty()) order_producers_after(stream, others);  // their next work waits for this kernel
}

LaunchTarget::LaunchTarget(const LoadedKernel& kernel, Device device, const LaunchConfig& config)
    : kernel_(&kernel),
      config_(config),
      has_attributes_(config.has_attributes()),
      context_(device.context()) {
    check(config, kernel.limits);
    if (!has_attributes_) return;
    const ContextGuard context(device.context());
    check_attributes(config, kernel, device);
}

}  // namespace bascule
