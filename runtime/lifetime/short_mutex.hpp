// A lock for a few statements, where a std::mutex would cost a large part of the work.
#pragma once

#include <atomic>

namespace bascule {

/// Guards a few statements that do not wait. Without contention, locking and unlocking take one atomic exchange each.
/// It must not be destroyed while a thread is still inside `unlock`. Use it with std::lock_guard and std::unique_lock.
class ShortMutex {
  public:
    void lock() noexcept {
        if (state_.exchange(locked, std::memory_order_acquire) != open) [[unlikely]]
            wait();
    }
    void unlock() noexcept {
        if (state_.exchange(open, std::memory_order_release) == awaited) [[unlikely]]
            state_.notify_one();
    }

  private:
    static constexpr int open = 0, locked = 1, awaited = 2;  // awaited: locked, and a thread may be waiting

    [[gnu::cold, gnu::noinline]] void wait() noexcept {
        while (state_.exchange(awaited, std::memory_order_acquire) != open)
            state_.wait(awaited, std::memory_order_relaxed);
    }

    std::atomic<int> state_{open};
};

}  // namespace bascule
