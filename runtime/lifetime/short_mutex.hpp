// A lock for a few statements, where locking a std::mutex would be a good part of the work.
#pragma once

#include <atomic>

namespace bascule {

/// Guards a few statements that wait for nothing. Without another thread, locking and unlocking are one exchange each.
/// It must not be destroyed while a thread is still inside `unlock`. For std::lock_guard and std::unique_lock.
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
    static constexpr int open = 0, locked = 1, awaited = 2;  // awaited: locked, and a thread may wait for it

    [[gnu::cold, gnu::noinline]] void wait() noexcept {
        while (state_.exchange(awaited, std::memory_order_acquire) != open)
            state_.wait(awaited, std::memory_order_relaxed);
    }

    std::atomic<int> state_{open};
};

}  // namespace bascule
