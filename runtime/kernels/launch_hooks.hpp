// Functions of the program that run at each launch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/interface/arguments/launch_config.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>
#include <bascule/runtime/trace/launch_site.hpp>

namespace bascule {

struct LoadedKernel;  // library.hpp

/// A launch whose arguments have been checked. Borrows from the launch: valid while the hook runs.
struct LaunchInfo {
    const LoadedKernel& kernel;
    const LaunchConfig& config;
    StreamRef stream;
    const ArgumentPack& args;
    LaunchSite site;
};

/// Called in the thread that launches; either function may be empty. `before` runs before the launch's first operation. If it
/// throws, nothing is issued and the launch fails with that error. `after` runs when the kernel and its waits are enqueued. If
/// it throws, the error is raised although the launch took place. It does not run after a launch that failed.
struct LaunchHook {
    std::function<void(const LaunchInfo&)> before;
    std::function<void(const LaunchInfo&)> after;
};

/// Adds a hook to all later launches of the process. Hooks run in the order of addition before a launch, and in reverse
/// order after it. Launches that a hook makes call no hooks, nor do Bascule's own kernels (conversions, fills).
/// Thread-safe. Returns the number for remove_launch_hook.
std::uint64_t add_launch_hook(LaunchHook hook);
/// Removes a hook. Launches that have begun may still call it. Thread-safe; ignores unknown numbers.
void remove_launch_hook(std::uint64_t number);

/// While an object lives, launches of the calling thread call no hooks.
class LaunchHooksSuspended {
  public:
    LaunchHooksSuspended() noexcept;
    ~LaunchHooksSuspended();
    LaunchHooksSuspended(LaunchHooksSuspended&&) = delete;
};

/// The hooks that existed when a launch began.
class HooksOfLaunch {
  public:
    HooksOfLaunch();
    void before(const LaunchInfo& launch) const;  ///< throws the error of the first hook that fails
    void after(const LaunchInfo& launch) const;   ///< calls all of them, then throws the first error

  private:
    std::vector<std::shared_ptr<const LaunchHook>> hooks_;
};

}  // namespace bascule
