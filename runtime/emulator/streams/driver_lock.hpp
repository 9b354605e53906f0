// The lock of the whole driver. Every exported function takes it, and host functions run under it. A real driver has such
// locks, so a thread that calls it while holding a lock for which a running host function waits (Python's GIL) never
// returns.
#pragma once

namespace emulated::streams {

/// Holds the lock for its lifetime; a thread may acquire it several times. Does nothing except under the schedule
/// `threads`, because otherwise host functions run in the calls that force them.
class DriverLock {
  public:
    DriverLock() noexcept;
    ~DriverLock();
    DriverLock(DriverLock&&) = delete;

    /// Enables the lock.
    static void enable() noexcept;
    /// Disables the lock at the end of the process, so that no call waits for host functions that never return.
    static void disable() noexcept;
    /// Disables the lock in a forked child, which does not have the threads that may hold it.
    static void forget() noexcept;

  private:
    bool counted_;
};

/// Releases the calling thread's lock for its lifetime, while the thread waits for operations. Must be constructed before
/// other locks are taken, so that it is destroyed after them.
class DriverUnlocked {
  public:
    DriverUnlocked() noexcept;
    ~DriverUnlocked();
    DriverUnlocked(DriverUnlocked&&) = delete;

  private:
    int depth_;
};

}  // namespace emulated::streams
