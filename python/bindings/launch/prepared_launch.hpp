// A launch, from Python's arguments to the driver. Calls, bound launches, `forall`, launch rules, `explain` and
// `prepare` all use this code, inside a capture or not.
#pragma once

#include <atomic>

#include <bascule/runtime/kernels/kernel.hpp>
#include <bascule/runtime/kernels/launch.hpp>
#include <bascule/runtime/streams/ordering.hpp>

#include "classes/collected.hpp"
#include "context/current_stream.hpp"
#include "launch/call_arguments.hpp"
#include "launch/launch_plan.hpp"
#include "launch/launcher_key.hpp"
#include "support/owners.hpp"
#include "support/without_gil.hpp"

namespace bascule::python {

struct Reading;

/// The result of a launcher's first call, which later calls use.
struct ResolvedLaunch {
    Device device;    ///< arguments are read for it, unless a stream or device is entered
    Kernel function;  ///< a template or overloads if the arguments choose
    const LoadedKernel* loaded = nullptr;  ///< `function` on `device`; null if the arguments choose either
    std::optional<LaunchTarget> target{};  ///< for `loaded`; empty if the plan launches nothing
};

/// A kernel and how it is launched. Several threads may make the first call; all use the result of one.
class LaunchState {
  public:
    LaunchState(Kernel the_kernel, LaunchPlan the_plan, const LauncherKey& the_key = {})
        : key(the_key), kernel(std::move(the_kernel)), plan(std::move(the_plan)), launches(plan.launches()) {}

    const LauncherKey key;  ///< empty unless the kernel caches the launcher
    const Kernel kernel;
    const LaunchPlan plan;
    const bool launches;  ///< false: everything is checked and nothing is launched

    /// Null before the first call.
    const ResolvedLaunch* resolved() const noexcept {
        return is_resolved_.load(std::memory_order_acquire) ? &*resolved_ : nullptr;
    }
    /// The first call compiles, loads, and checks the configuration. Throws: ArgumentError, CompileError, LibraryError,
    /// CudaError; the next call then tries again. If only the arrays can tell the device, and the likely one is not in
    /// use yet, nothing is loaded. The result is then stored in `undecided`, and the caller calls `resolve_on` after it
    /// has read the arrays.
    const ResolvedLaunch& resolve(std::unique_ptr<ResolvedLaunch>& undecided) {
        const ResolvedLaunch* known = resolved();
        return known != nullptr ? *known : resolve_now(undecided);
    }
    const ResolvedLaunch& resolve_on(Device device);

    /// The object that was given as the stream, such as a bascule.Stream; null or None if none was. For a borrowed
    /// stream, a new bascule.Stream.
    py::object stream_object() const;
    /// Takes ownership of the stream that the launcher borrows.
    void keep_stream() noexcept { kept_stream_ = plan.lent_stream.lock(); }

    void finalize() noexcept {}
    void visit_references(ReferenceVisitor& each) {
        each.only_look_at(plan.stream_object.ptr());
        // Other launchers may share the options.
        if (plan.options.use_count() == 1) each.only_look_at(plan.options->kept.ptr());
    }

  private:
    const ResolvedLaunch& resolve_now(std::unique_ptr<ResolvedLaunch>& undecided);

    std::atomic<bool> is_resolved_{false};
    GilMutex mutex_;
    std::optional<ResolvedLaunch> resolved_;
    std::shared_ptr<Stream> kept_stream_;
};

/// The arguments and the values that were read from them, in the order of the parameters.
struct ReadArguments {
    explicit ReadArguments(std::size_t count) : objects(count), values(count) {}
    Slots<PyObject*> objects;  ///< borrowed from the call
    Slots<ArgumentValue> values;
};

/// A launch that is completely checked and not issued. Needs the GIL. Keeps the arrays alive and borrows the LaunchState.
class PreparedLaunch {
  public:
    /// Reads each argument once and checks it. If `seen` is given, it receives what was read, and borrows from the call.
    /// Throws: ArgumentError that names the argument; a producer's own exception unchanged; as LaunchState::resolve.
    PreparedLaunch(LaunchState& state, const CallArguments& arguments, ReadArguments* seen = nullptr);
    PreparedLaunch(PreparedLaunch&&) = delete;

    const Kernel& function() const noexcept { return chosen_ ? *chosen_ : resolved_.function; }
    Device device() const noexcept { return device_; }
    const LaunchConfig& config() const noexcept { return target_->config(); }  ///< only if the plan launches
    const ArgumentPack& pack() const noexcept { return *pack_; }
    OwnerList& owners() noexcept { return owners_; }
    /// The code that the launch uses. Call this only if the plan launches.
    const CodeRef& code() const noexcept { return target_->kernel().library->code(); }

    /// The stream that the launch would use now. Throws: ArgumentError if the current stream belongs to another device.
    StreamRef stream() const {
        if (anything_entered()) [[unlikely]]
            return stream_among_entered();
        return choose_stream(state_.plan.stream, std::nullopt, pack_->common_stream(), device_);
    }
    /// Launches on `stream`, without the GIL. Takes the owners, also when it throws. Throws: CudaError.
    [[gnu::always_inline]] void enqueue(StreamRef stream, const Owners& owners) {
        const LaunchSite site = launch_site(state_.plan.site);
        const GilReleased released;
        bascule::launch(*target_, stream, *pack_, owners, site);
    }

  private:
    [[gnu::noinline]] void read_and_choose(Reading& reading, const CallArguments& arguments,
                                           ReadArguments* seen);
    void find_other_target();
    StreamRef stream_among_entered() const;

    const LaunchState& state_;
    std::unique_ptr<ResolvedLaunch> undecided_;  // null unless the arrays of a first launch choose the device
    const ResolvedLaunch& resolved_;
    Device device_;
    std::optional<StreamRef> entered_;      // the entered stream, if none was given
    const LaunchTarget* target_ = nullptr;  // null if the plan launches nothing
    OwnerList owners_;
    std::optional<ArgumentPack> pack_;
    std::optional<Kernel> chosen_;            // if the arguments choose
    std::optional<LaunchTarget> own_target_;  // if the resolved one does not apply
};

/// Prepares a launch and issues it, unless the plan launches nothing. Throws: as PreparedLaunch and its `enqueue`.
void launch(LaunchState& state, const CallArguments& arguments);

// --- Kernels for Python: compiled, chosen and loaded without the GIL, with the compiler's warnings issued

/// Returns the kernel's function if it is not a template and has no overloads; else the kernel itself. Compiles if that
/// is necessary to know. Throws: CompileError, LibraryError.
Kernel resolve_function(const Kernel& kernel, Device device);

/// Returns the function that the argument values choose, and compiles it if necessary. Throws: as Kernel::for_arguments.
Kernel choose_function(const Kernel& kernel, std::span<const ArgumentValue> values, Device device);

/// Compiles a function for the device without loading it. Throws: CompileError, LibraryError.
KernelImage compile(const Kernel& function, Device device);

/// Compiles and loads a function for the device. Throws: ArgumentError for a template or overloads; CompileError, LibraryError;
/// CudaError, also if the function is not loaded yet and a capture of `stream` (by default the current stream) forbids loading.
const LoadedKernel& load(const Kernel& function, Device device, std::optional<StreamRef> stream = {});

}  // namespace bascule::python
