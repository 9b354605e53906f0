// The lock of the program's language: Python's GIL. A thread that holds it must not call the driver: the driver may
// wait for a host function, and a Python host function waits for the GIL.
#pragma once

#include <bascule/runtime/driver/device.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/services.hpp>

namespace bascule {

/// Releases the lock for its lifetime, if the calling thread holds it. For destructors that call the driver, since
/// Python may destroy an object anywhere. All other code calls the driver without the lock.
class ProgramLockReleased {
  public:
    ProgramLockReleased() noexcept
        : lock_(services().lock), state_(lock_.release == nullptr ? nullptr : lock_.release()) {}
    ~ProgramLockReleased() {
        if (state_ != nullptr) lock_.acquire(state_);
    }
    ProgramLockReleased(ProgramLockReleased&&) = delete;

  private:
    const ProgramLock& lock_;
    void* state_;
};

/// For destructors of driver objects: calls `end` with the driver, without the lock and in the device's context. Does
/// nothing if the driver is gone, because its objects are then gone too.
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
