#include "streams/driver_lock.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace emulated::streams {
namespace {

/// Not a std::mutex, because `disable` must wake waiting threads. Never destroyed, because calls may come until the very
/// end.
struct State {
    std::mutex mutex;
    std::condition_variable released;
    bool taken = false;
};

State& state() noexcept {
    static auto& made = *new State;
    return made;
}

std::atomic<bool> enabled{false};
thread_local constinit int depth = 0;  // how many times this thread has acquired the lock

void take() noexcept {
    if (!enabled.load(std::memory_order_acquire)) return;
    std::unique_lock lock(state().mutex);
    state().released.wait(lock, [] { return !state().taken || !enabled.load(); });
    state().taken = true;
}

void give_back() noexcept {
    if (!enabled.load(std::memory_order_acquire)) return;
    {
        const std::lock_guard lock(state().mutex);
        state().taken = false;
    }
    state().released.notify_one();
}

}  // namespace

DriverLock::DriverLock() noexcept : counted_(enabled.load(std::memory_order_acquire)) {
    if (counted_ && depth++ == 0) take();
}

DriverLock::~DriverLock() {
    if (counted_ && --depth == 0) give_back();
}

void DriverLock::enable() noexcept {
    state();
    enabled.store(true, std::memory_order_release);
}

void DriverLock::disable() noexcept {
    if (!enabled.exchange(false)) return;
    { const std::lock_guard lock(state().mutex); }  // so that no thread is between the check and the wait
    state().released.notify_all();
}

void DriverLock::forget() noexcept { enabled.store(false); }

DriverUnlocked::DriverUnlocked() noexcept : depth_(std::exchange(depth, 0)) {
    if (depth_ > 0) give_back();
}

DriverUnlocked::~DriverUnlocked() {
    depth = depth_;
    if (depth_ > 0) take();
}

}  // namespace emulated::streams
