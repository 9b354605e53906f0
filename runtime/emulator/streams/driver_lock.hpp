// The lock of the whole driver: every exported function takes it, and host functions run under it. A real driver has
// such locks, so a thread that calls it with a lock that a host function needs (Python's GIL) never returns.
#pragma once

namespace emulated::streams {

/// Holds the lock for its lifetime; a thread may hold it several times. Under other schedules than `threads`, where
/// host functions run in the calls that force them, there is none.
class DriverLock {
  public:
    DriverLock() noexcept;
    ~DriverLock();
    DriverLock(const DriverLock&) = delete;
    DriverLock& operator=(const DriverLock&) = delete;

    /// From now on there is one.
    static void enable() noexcept;
    /// From now on there is none: the process ends, and no call waits for host functions that never return.
    static void disable() noexcept;
    /// The same in a forked child, whose threads do not hold what its parent's did.
    static void forget() noexcept;

  private:
    bool counted_;
};

/// Gives the calling thread's lock back for its lifetime: the thread waits for operations. It is made before any other
/// lock is taken, so that it ends after them.
class DriverUnlocked {
  public:
    DriverUnlocked() noexcept;
    ~DriverUnlocked();
    DriverUnlocked(const DriverUnlocked&) = delete;
    DriverUnlocked& operator=(const DriverUnlocked&) = delete;

  private:
    int depth_;
};

}  // namespace emulated::streams
