// The profiler of kernels: counts what they execute, by line of their source. The counts depend only on the kernel and its
// arguments, and say nothing about time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "checks/checks.hpp"
#include "machine/observer.hpp"

namespace emulated::checks {

// clang-format off
/// Each counter, with what it counts. A request is one instruction of a warp that accesses memory, whatever its width.
#define BASCULE_COUNTERS(COUNTER) \
    COUNTER(instructions, "instructions that warps executed") \
    COUNTER(thread_instructions, "the active lanes of these, summed") \
    COUNTER(branches, "conditional branches that warps executed") \
    COUNTER(divergent_branches, "those that only some of the active lanes took") \
    COUNTER(global_loads, "requests that load from global memory") \
    COUNTER(global_load_sectors, "the different sectors of 32 bytes in each of them, summed") \
    COUNTER(global_stores, "requests that store to global memory") \
    COUNTER(global_store_sectors, "their sectors") \
    COUNTER(global_atomics, "atomic requests to global memory") \
    COUNTER(global_atomic_sectors, "their sectors") \
    COUNTER(shared_requests, "loads, stores and atomics of shared memory") \
    COUNTER(bank_conflicts, "further passes that these need because lanes access different words of a bank") \
    COUNTER(local_requests, "loads and stores of local memory") \
    COUNTER(atomic_conflicts, "lanes of atomics whose address an earlier lane of the same request has")
// clang-format on

struct Counters {
#define COUNTER(name, counts) std::uint64_t name = 0;
    BASCULE_COUNTERS(COUNTER)
#undef COUNTER
};

/// Discards the counts so far and counts launches that begin from now on. Thread-safe, as are the functions below.
void start_profile();
/// Launches that have begun are counted to their end.
void stop_profile() noexcept;
/// The counts since the last start as JSON; see bascule_emulated_profile_read.
std::string read_profile();

/// The observer that counts a launch and adds its counts to the profile when it is destroyed. Null while nothing is counted.
std::unique_ptr<machine::Observer> make_profiler(const machine::LaunchRequest& request,
                                                 const LaunchName& launch);

}  // namespace emulated::checks
