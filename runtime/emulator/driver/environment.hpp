// The environment variables of the emulated device, read and checked once.
#pragma once

#include <cstdint>
#include <string>

#include "machine/watchdog.hpp"
#include "streams/schedule.hpp"

namespace emulated::driver {

inline constexpr int most_devices = 16;

/// What the variables BASCULE_EMULATED_... ask for. One that is unset or empty has its default.
struct Environment {
    int devices = 1;                                      ///< 1 to most_devices
    bool executes = true;                                 ///< whether kernels run
    bool looks_for_races = false;                         ///< memory is always checked
    unsigned workers = 1;                                 ///< threads that run blocks; default: one per core
    std::uint64_t memory_bytes = std::uint64_t{2} << 30;  ///< of each device
    /// `eager` unless another is asked for: what runs is then on the stack of the call that asked for it, for debuggers
    /// and profilers, and the same program does the same every time.
    streams::Schedule schedule;
    machine::TimeLimits time_limits;
    /// About the first variable whose value is not understood, as a sentence; empty when all are.
    std::string complaint;
};

Environment read_environment();

}  // namespace emulated::driver
