#include <exception>
#include <mutex>
#include <utility>

#include <bascule/jit/process/never_destroyed.hpp>
#include <bascule/runtime/kernels/launch_hooks.hpp>
#include <bascule/runtime/streams/observer.hpp>

namespace bascule {
namespace {

struct NumberedHook {
    std::uint64_t number;
    std::shared_ptr<const LaunchHook> hook;
};

struct HookRegistry {
    std::mutex mutex;
    std::vector<NumberedHook> hooks;  // in the order of addition
    std::uint64_t newest = 0;
};

HookRegistry& hook_registry() { return never_destroyed<HookRegistry>(); }  // used by launches at exit

constinit thread_local int suspensions = 0;

}  // namespace

std::uint64_t add_launch_hook(LaunchHook hook) {
    HookRegistry& registry = hook_registry();
    auto shared = std::make_shared<const LaunchHook>(std::move(hook));
    const std::lock_guard lock(registry.mutex);
    registry.hooks.push_back({++registry.newest, std::move(shared)});
    set_watch(Watch::hooks, true);
    return registry.newest;
}

void remove_launch_hook(std::uint64_t number) {
    HookRegistry& registry = hook_registry();
    std::shared_ptr<const LaunchHook> removed;  // its destructor may run any code, without the lock
    const std::lock_guard lock(registry.mutex);
    for (auto each = registry.hooks.begin(); each != registry.hooks.end(); ++each) {
        if (each->number != number) continue;
        removed = std::move(each->hook);
        registry.hooks.erase(each);
        break;
    }
    if (registry.hooks.empty()) set_watch(Watch::hooks, false);
}

LaunchHooksSuspended::LaunchHooksSuspended() noexcept { ++suspensions; }
LaunchHooksSuspended::~LaunchHooksSuspended() { --suspensions; }

HooksOfLaunch::HooksOfLaunch() {
    if (!watches(Watch::hooks) || suspensions != 0) return;
    HookRegistry& registry = hook_registry();
    const std::lock_guard lock(registry.mutex);
    for (const NumberedHook& each : registry.hooks) hooks_.push_back(each.hook);
}

void HooksOfLaunch::before(const LaunchInfo& launch) const {
    const LaunchHooksSuspended suspended;
    for (const auto& hook : hooks_) {
        if (hook->before) hook->before(launch);
    }
}

void HooksOfLaunch::after(const LaunchInfo& launch) const {
    const LaunchHooksSuspended suspended;
    std::exception_ptr first;
    for (auto hook = hooks_.rbegin(); hook != hooks_.rend(); ++hook) {
        try {
            if ((*hook)->after) (*hook)->after(launch);
        } catch (...) {
            if (first == nullptr) first = std::current_exception();
        }
    }
    if (first != nullptr) std::rethrow_exception(first);
}

}  // namespace bascule
