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
    static constexpr int default_driver = 13000;

    /// The CUDA version whose driver this device behaves like: 12040; 0 where none was named, which is
    /// `default_driver` and takes the PTX of every version.
    int named_driver = 0;
    int architecture = 80;            ///< what the devices report, and the newest one whose PTX they take
    bool waits_for_launches = false;  ///< CUDA_LAUNCH_BLOCKING
    bool compiles_ptx = true;         ///< a named driver obeys CUDA_DISABLE_PTX_JIT
    int devices = 1;                  ///< 1 to most_devices
    /// Devices that another process has for itself, a bit each: they refuse contexts.
    std::uint32_t busy = 0;
    bool concurrent_managed = true;  ///< the host may use managed memory while kernels run
    bool pageable = false;           ///< kernels and copies reach all memory of the host, when they run (HMM)
    bool executes = true;            ///< whether kernels run
    bool loads_lazily = false;       ///< kernels and variables at their first use
    bool frees_wait = true;          ///< cuMemFree waits for the device's work, as drivers may do
    bool crashes_on_stale_streams = false;  ///< as drivers do; else the handle is refused
    bool has_memory_pools = true;           ///< whether memory can be allocated in stream order
    bool looks_for_races = false;           ///< memory is always checked
    bool reports_leaks = false;  ///< of memory that kernels allocate, when a context or the process ends
    bool tells_reports = false;  ///< on stderr, of faults and races, where the program asks for none
    unsigned workers = 1;        ///< threads that run blocks; default: one per core
    std::uint64_t memory_bytes = std::uint64_t{2} << 30;  ///< of each device
    /// `eager` unless another is asked for: what runs is then on the stack of the call that asked for it, for debuggers
    /// and profilers, and the same program does the same every time.
    streams::Schedule schedule;
    machine::TimeLimits time_limits;
    /// About the first variable whose value is not understood, as a sentence; empty when all are.
    std::string complaint;

    int driver() const noexcept { return named_driver == 0 ? default_driver : named_driver; }
};

Environment read_environment();

}  // namespace emulated::driver
