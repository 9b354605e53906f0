// What the program that uses Bascule provides. Python's bindings install their services on import; C++ programs need none.
#pragma once

#include <atomic>

#include <bascule/jit/process/services.hpp>

namespace bascule {

struct DriverFunctions;  // driver.hpp

/// The lock of the program's language: Python's GIL. `release` returns null if the calling thread does not hold it, and
/// otherwise the state that `acquire` needs.
struct ProgramLock {
    void* (*release)() noexcept = nullptr;
    void (*acquire)(void* state) noexcept = nullptr;
};

/// Lets waits for a GPU be interrupted. The emulated device has its own way (BasculeEmulatedInterrupt). Python
/// runs signal handlers only in its main thread, and not while that is inside the driver.
struct WaitWatch {
    /// Whether the calling thread's waits can be interrupted.
    bool (*watches_this_thread)() noexcept = nullptr;
    /// Called in the waiting thread about every 100 ms, with no lock held. True ends the wait.
    bool (*is_interrupted)() noexcept = nullptr;
};

struct Services {
    JitServices jit{};
    ProgramLock lock{};
    WaitWatch wait_watch{};
    /// For tests: may replace entries of the driver's table before its functions are called. An entry is null if its
    /// function was not found.
    void (*change_driver_table)(DriverFunctions& table) = nullptr;
};

namespace detail {
inline constexpr Services no_services{};
inline constinit std::atomic<const Services*> services{&no_services};
}  // namespace detail

inline const Services& services() noexcept { return *detail::services.load(std::memory_order_acquire); }

/// Replaces the services of the process, also the JIT's. `services` must live as long as the process.
inline void install(const Services& services) noexcept {
    install(services.jit);
    detail::services.store(&services, std::memory_order_release);
}

}  // namespace bascule
