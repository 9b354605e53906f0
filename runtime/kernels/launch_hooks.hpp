// Functions of the program that are called for each launch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/interface/arguments/launch_config.hpp>
#include <bascule/runtime/faults/launch_history.hpp>
#include <bascule/runtime/kernels/library.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>
#include <bascule/runtime/streams/watches.hpp>

namespace bascule {

/// A launch whose arguments were all checked. Borrows from the launch: valid while the hook runs.
struct LaunchInfo {
    const LoadedKernel& kernel;
    const LaunchConfig& config;
    StreamRef stream;
    const ArgumentPack& args;
    LaunchSite site;
};

/// Called on the thread that launches; either may be empty. `before` runs before the launch's first operation: when it
/// throws, nothing is issued and that is the launch's error. `after` runs when the kernel and its waits are enqueued:
/// what it throws is raised then, and the launch stands. It does not run for a launch that failed.
struct LaunchHook {
    std::function<void(const LaunchInfo&)> before;
    std::function<void(const LaunchInfo&)> after;
};

/// From now on every launch of the process calls the hook, in the order in which hooks were added before it, in the
/// opposite order after it. Launches that a hook makes call none, nor do the kernels of Bascule itself (conversions,
/// fills). Thread-safe. Returns what remove_launch_hook takes.
std::uint64_t add_launch_hook(LaunchHook hook);
/// Launches that have begun may still call it. Thread-safe; a number that is not known is ignored.
void remove_launch_hook(std::uint64_t number);

/// While it lives, launches of the calling thread call no hooks.
class LaunchHooksSuspended {
  public:
    LaunchHooksSuspended() noexcept;
    ~LaunchHooksSuspended();
    LaunchHooksSuspended(LaunchHooksSuspended&&) = delete;
};

/// The hooks of one launch: those that there were when it began.
class HooksOfLaunch {
  public:
    HooksOfLaunch();
    void before(const LaunchInfo& launch) const;  ///< throws what the first hook that fails throws
    void after(const LaunchInfo& launch) const;   ///< calls all of them, then throws what the first one threw

  private:
    std::vector<std::shared_ptr<const LaunchHook>> hooks_;
};

}  // namespace bascule
