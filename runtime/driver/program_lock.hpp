// The lock that the program's language runs under: Python's GIL. A thread that holds it never enters the driver,
// because the driver may wait there for a host function, and a host function of Python waits for the GIL.
#pragma once

#include <atomic>

#include <bascule/runtime/driver/device.hpp>
#include <bascule/runtime/driver/driver.hpp>

namespace bascule {

/// How the lock is given back and taken again. `release` returns null where the calling thread does not hold it, and
/// else what `acquire` needs.
struct ProgramLock {
    void* (*release)() noexcept;
    void (*acquire)(void* state) noexcept;
};

/// The bindings set it when they are imported; null in C++ programs.
inline std::atomic<const ProgramLock*> program_lock{nullptr};

/// Gives the lock back for its lifetime, where the calling thread holds it. For destructors that enter the driver: the
/// program may destroy an object anywhere. Everything else is called without the lock.
class ProgramLockReleased {
  public:
    ProgramLockReleased() noexcept
        : lock_(program_lock.load(std::memory_order_acquire)),
          state_(lock_ == nullptr ? nullptr : lock_->release()) {}
    ~ProgramLockReleased() {
        if (state_ != nullptr) lock_->acquire(state_);
    }
    ProgramLockReleased(ProgramLockReleased&&) = delete;

  private:
    const ProgramLock* lock_;
    void* state_;
};

/// For destructors of what the driver has: calls `end` with the driver, without the lock and in the device's context. Not
/// where the driver is gone, and all that it had with it.
template <class End>
void end_in_context(Device device, const End& end) noexcept {
    const ProgramLockReleased released;
    try {
        const ContextGuard context(device.context());
        end(*Driver::existing());
    } catch (...) {
    }
}

}  // namespace bascule
