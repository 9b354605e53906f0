// One launch from Python's arguments to the driver: the one way for calls, bound launches, `forall`, launch rules,
// `explain` and `prepare`, inside a capture or not.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/runtime/kernels/kernel.hpp>
#include <bascule/runtime/kernels/launch.hpp>
#include <bascule/runtime/streams/ordering.hpp>

#include "classes/collected.hpp"
#include "context/call_site.hpp"
#include "context/current_stream.hpp"
#include "launch/call_arguments.hpp"
#include "launch/launch_plan.hpp"
#include "launch/launcher_key.hpp"
#include "support/gil.hpp"
#include "support/owners.hpp"
#include "support/without_gil.hpp"

namespace bascule::python {

struct Reading;

/// What the first call of a launcher finds out for all later ones.
struct ResolvedLaunch {
    Device device;    ///< where arguments are read for, unless something is entered
    Kernel function;  ///< a template or overloads where the arguments choose
    const LoadedKernel* loaded =
        nullptr;  ///< of `function` on `device`; null where the arguments choose either
    std::optional<LaunchTarget> target{};  ///< of `loaded`, where the plan launches
};

/// A kernel and how it is launched. Any number of threads may make the first call; one of them decides for all.
class LaunchState {
  public:
    LaunchState(Kernel the_kernel, LaunchPlan the_plan, const LauncherKey& the_key = {})
        : key(the_key), kernel(std::move(the_kernel)), plan(std::move(the_plan)), launches(plan.launches()) {}

    const LauncherKey key;  ///< empty but for a launcher that its kernel knows
    const Kernel kernel;
    const LaunchPlan plan;
    const bool launches;  ///< false: everything is checked and nothing is launched

    /// Null before the first call.
    const ResolvedLaunch* resolved() const noexcept {
        return is_resolved_.load(std::memory_order_acquire) ? &*resolved_ : nullptr;
    }
    /// The first call compiles, loads, and checks the configuration. Throws: ArgumentError, CompileError,
    /// LibraryError, CudaError; then the next call tries again.
    /// Where nothing but the arrays may say which device is meant, and the likely one is not in use, nothing is
    /// loaded: the answer is then put into `undecided`, and `resolve_on` follows once they are read.
    const ResolvedLaunch& resolve(std::unique_ptr<ResolvedLaunch>& undecided) {
        const ResolvedLaunch* known = resolved();
        return known != nullptr ? *known : resolve_now(undecided);
    }
    const ResolvedLaunch& resolve_on(Device device);

    /// The bascule.Stream, or whatever else was given as the stream; None if nothing was. For a stream that was lent, a new
    /// bascule.Stream of it.
    pybind11::object stream_object() const;
    /// From now on the launcher keeps the stream that was lent to it.
    void keep_stream() noexcept { kept_stream_ = plan.lent_stream.lock(); }

    void finalize() noexcept {}
    void visit_references(ReferenceVisitor& each) {
        each.only_look_at(plan.stream_object.ptr());
        // Launchers that `options` made of each other share them.
        if (plan.options.use_count() == 1) each.only_look_at(plan.options->kept.ptr());
    }

  private:
    const ResolvedLaunch& resolve_now(std::unique_ptr<ResolvedLaunch>& undecided);

    std::atomic<bool> is_resolved_{false};
    GilMutex mutex_;
    std::optional<ResolvedLaunch> resolved_;
    std::shared_ptr<Stream> kept_stream_;
};

/// Every argument as it was read, in the order of the parameters.
struct ReadArguments {
    explicit ReadArguments(std::size_t count) : objects(count), values(count) {}
    Slots<PyObject*> objects;  ///< borrowed from the call
    Slots<ArgumentValue> values;
};

/// A launch of which everything is checked and nothing is issued. Needs the GIL; keeps the arrays alive; borrows the
/// LaunchState.
class PreparedLaunch {
  public:
    /// Reads each argument once and checks it. `seen`, where it is given, keeps what was read: it borrows from the
    /// call. Throws: ArgumentError that names the argument; a producer's own exception unchanged; as
    /// LaunchState::resolve.
    PreparedLaunch(LaunchState& state, const CallArguments& arguments, ReadArguments* seen = nullptr);
    PreparedLaunch(const PreparedLaunch&) = delete;
    PreparedLaunch& operator=(const PreparedLaunch&) = delete;

    const Kernel& function() const noexcept { return chosen_ ? *chosen_ : resolved_.function; }
    Device device() const noexcept { return device_; }
    const LaunchConfig& config() const noexcept { return target_->config(); }  ///< where the plan launches
    const ArgumentPack& pack() const noexcept { return *pack_; }
    OwnerList& owners() noexcept { return owners_; }
    /// Where the plan launches.
    const CodeRef& code() const noexcept { return target_->kernel().library->code(); }

    /// The stream that a launch would be on now. Throws: ArgumentError for a current one of another device.
    StreamRef stream() const {
        if (anything_entered()) [[unlikely]]
            return stream_among_entered();
        return choose_stream(state_.plan.stream, std::nullopt, pack_->common_stream(), device_);
    }
    /// Launches on that stream, without the GIL. `owners` are taken, also when this throws. Throws: CudaError.
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
    std::unique_ptr<ResolvedLaunch> undecided_;  // null but for a first launch whose arrays chose the device
    const ResolvedLaunch& resolved_;
    Device device_;
    std::optional<StreamRef> entered_;      // what the arguments are read for, where none was given
    const LaunchTarget* target_ = nullptr;  // null where the plan launches nothing
    OwnerList owners_;
    std::optional<ArgumentPack> pack_;
    std::optional<Kernel> chosen_;            // where the arguments choose
    std::optional<LaunchTarget> own_target_;  // where it is not the resolved one
};

/// Prepares a launch and issues it, unless the plan launches nothing. Throws: as both.
void launch(LaunchState& state, const CallArguments& arguments);

}  // namespace bascule::python
