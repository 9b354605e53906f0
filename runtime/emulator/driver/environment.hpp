// The environment variables of the emulated device, read and checked once.
#pragma once

#include <cstdint>
#include <string>

#include "checks/checks.hpp"
#include "machine/watchdog.hpp"
#include "streams/schedule.hpp"

namespace emulated::driver {

inline constexpr int most_devices = 16;

/// The values of the BASCULE_EMULATED_... variables, CUDA_LAUNCH_BLOCKING and CUDA_DISABLE_PTX_JIT. A variable that is
/// unset or empty has its default.
struct Environment {
    static constexpr int default_driver = 13000;

    /// The CUDA version whose driver this device imitates, such as 12040. 0 if none was named: the driver is then
    /// `default_driver` and accepts PTX of every version.
    int named_driver = 0;
    int architecture = 80;            ///< the compute capability, and the newest `.target` that is accepted
    bool waits_for_launches = false;  ///< CUDA_LAUNCH_BLOCKING
    bool compiles_ptx = true;         ///< a named driver obeys CUDA_DISABLE_PTX_JIT
    int devices = 1;                  ///< 1 to most_devices
    /// Devices that refuse contexts because another process has exclusive use of them, one bit each.
    std::uint32_t busy = 0;
    bool concurrent_managed = true;  ///< the host may use managed memory while kernels run
    bool pageable = false;           ///< kernels and copies access any host memory, when they run (HMM)
    bool executes = true;            ///< false if launches return at once without running the kernel
    bool loads_lazily = false;       ///< kernels and variables are loaded at their first use
    bool frees_wait = true;          ///< cuMemFree waits for the device's work, as drivers may
    bool crashes_on_stale_streams = false;  ///< a call with a destroyed stream ends the process
    bool has_memory_pools = true;           ///< memory can be allocated in stream order
    checks::Checks checks = 0;              ///< optional checks; memory errors are always found
    bool tells_reports = false;  ///< prints faults and races to stderr if the program does not read reports
    unsigned workers = 1;        ///< threads that run blocks; default: one per core
    std::uint64_t memory_bytes = std::uint64_t{2} << 30;  ///< per device
    /// `eager` by default: an operation runs on the stack of the call that issues it, which helps debuggers and profilers,
    /// and a program behaves the same in every run.
    streams::Schedule schedule;
    machine::TimeLimits time_limits;
    /// A sentence about the first variable whose value is invalid; empty if all are valid.
    std::string complaint;

    int driver() const noexcept { return named_driver == 0 ? default_driver : named_driver; }
};

Environment read_environment();

}  // namespace emulated::driver
