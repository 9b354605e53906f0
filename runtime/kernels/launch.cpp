// One launch, from checked arguments to the driver. For launches from Python,
// python/bindings/launch/prepared_launch.cpp does the steps before.
#include <optional>

#include <fmt/format.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/runtime/kernels/launch.hpp>
#include <bascule/runtime/kernels/launch_attributes.hpp>
#include <bascule/runtime/kernels/launch_hooks.hpp>
#include <bascule/runtime/streams/stream.hpp>
#include <bascule/runtime/streams/stream_capture.hpp>
#include <bascule/runtime/trace/recorder.hpp>

namespace bascule {
namespace {

[[gnu::cold, gnu::noinline]] void fail_launch(DriverResult code, const LaunchTarget& target, StreamRef stream,
                                              const ArgumentPack& args, LaunchSite site) {
    explain_refusal(code, target.config(), target.kernel());
    std::optional<SuspectedLaunch> own;  // without it, the fault belongs to an earlier launch
    if (launches_wait()) own.emplace(*target.kernel().names, stream, site, args);
    Driver::get().check(code, stream.native(),
                        fmt::format("launching kernel '{}'", target.kernel().image->name));
}

/// The only call of cuLaunchKernelEx. The stream's context must be current. Throws: CudaError.
[[gnu::always_inline]] inline void enqueue(const LaunchTarget& target, StreamRef stream, ArgumentPack& args,
                                           LaunchSite site) {
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
    launch.numAttrs = target.has_attributes() ? to_native(config, attributes) : 0;
    launch.attrs = launch.numAttrs == 0 ? nullptr : attributes.data();
    const Driver& driver = Driver::get();
    // The driver accepts a CUkernel as a CUfunction of the current context.
    auto* const function = reinterpret_cast<CUfunction>(target.kernel().native);
    const DriverResult code = driver.api().cuLaunchKernelEx(&launch, function, args.table(), nullptr);
    if (code != CUDA_SUCCESS) [[unlikely]]
        fail_launch(code, target, stream, args, site);
}

[[gnu::cold, gnu::noinline]] void check_default_stream(CUcontext current, const ArgumentPack& args) {
    const int index = args.names_default_stream();
    naming_argument(index, args.signature().parameters[static_cast<std::size_t>(index)].name,
                    [&] { require_primary_defaults(current); });
}

/// The watcher of launches that nothing observes.
struct Unwatched {
    void before_enqueue() const noexcept {}
    void after_enqueue() const noexcept {}
    void after_launch() const {}
};

template <class Watcher>
[[gnu::always_inline]] inline void issue(const LaunchTarget& target, StreamRef stream, ArgumentPack& args,
                                         const Owners& owners, LaunchSite site, Watcher&& watcher) {
    ThreadMemory& memory = thread_memory;
    const CodeRef* code = owners.operations == 0 ? nullptr : &target.kernel().library->code();
    OwnersKept kept(stream, owners, memory, code);
    const ContextGuard context(target.context());
    if (context.replaced() != nullptr && args.names_default_stream() >= 0) [[unlikely]]
        check_default_stream(context.replaced(), args);
    const ProducersToOrder producers(stream, args.producers(), &args.signature());  // captures: rule 13
    const std::span others = producers.get();
    if (!others.empty()) wait_for_producers(stream, others);  // cuEventRecord and cuStreamWaitEvent for each
    const LaunchNote note(memory, site);
    watcher.before_enqueue();
    enqueue(target, stream, args, site);  // cuLaunchKernelEx
    watcher.after_enqueue();
    note.accept(target.kernel().names, stream);  // for the report of a fault
    watcher.after_launch();
    if (!others.empty()) order_producers_after(stream, others);  // their next work waits for this kernel
    kept.keep_now(producers.found_no_capture() ? StreamFacts::not_captured : StreamFacts::in_context);
}

/// Records the launch, and waits for it if the debugging mode asks for that.
struct Watched {
    TracedCall& call;
    const LaunchInfo& launch;

    void before_enqueue() const { call.begin_operation(launch.stream); }
    void after_enqueue() const { call.end_operation(); }
    /// Waits right after the launch, so that no other call reports the launch's fault.
    void after_launch() const {
        if (watches(Watch::synchronise))
            wait_for_suspect(*launch.kernel.names, launch.stream, launch.site, launch.args);
    }
};

[[gnu::cold, gnu::noinline]] void launch_watched(const LaunchTarget& target, StreamRef stream,
                                                 ArgumentPack& args, const Owners& owners, LaunchSite site) {
    const LaunchInfo info{target.kernel(), target.config(), stream, args, site};
    std::optional<HooksOfLaunch> hooks;
    try {
        hooks.emplace();
        hooks->before(info);
    } catch (...) {
        release(owners);
        throw;
    }
    {
        TracedCall call(CallKind::launch, [&] { return "launch " + info.kernel.names->name; });
        if (TraceRecord* record = call.record()) {
            record->subject = to_string(info.kernel.image->signature);
            record->config = info.config;
            record->site = site;
        }
        issue(target, stream, args, owners, site, Watched{call, info});
    }
    hooks->after(info);
}

}  // namespace

void launch(const LaunchTarget& target, StreamRef stream, ArgumentPack& args, const Owners& owners,
            LaunchSite site) {
    if (watches_anything()) [[unlikely]] {
        launch_watched(target, stream, args, owners, site);
    } else {
        issue(target, stream, args, owners, site, Unwatched{});
    }
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
