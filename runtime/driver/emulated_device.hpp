// The emulated device's own functions and the search for its library. Nothing links the library: it is loaded like a driver.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <bascule/interface/errors/finding.hpp>
#include <bascule/jit/process/dynamic_library.hpp>
#include <bascule/runtime/emulator/emulated_abi.h>

namespace bascule {

/// A fault and the launch that caused it.
struct EmulatedFault {
    enum class Lack : std::uint8_t { nothing, shared_bytes, cooperation };

    std::string report{};
    std::string kernel{};       ///< empty if another operation failed, such as a copy; the rest is then 0
    Lack lack = Lack::nothing;  ///< what the kernel needed and the launch did not provide
    std::uint64_t stream = 0;   ///< the handle that the launch got
    std::uint64_t site = 0;     ///< the LaunchSite's number
};

/// What a check found, with the lines of the text that was compiled, and facts from which the rest is made.
struct EmulatedFinding {
    Finding finding{};
    bool is_inlined = false;  ///< the line belongs to a function that was inlined
    std::uint64_t site = 0;   ///< the LaunchSite's number
    /// For each parameter its value if it points into the allocation of the access; otherwise 0.
    std::vector<std::uint64_t> arguments{};
};

/// Memory that one line of a kernel allocated with malloc or new and that nothing has freed.
struct EmulatedLeak {
    std::string kernel;
    std::string place;        ///< "line 7 of k.cu", with the file name that NVRTC got
    std::uint64_t count = 0;  ///< number of allocations
    std::uint64_t bytes = 0;
};

// clang-format off
/// The functions of emulated_abi.h that Bascule calls.
#define BASCULE_EMULATED_FUNCTIONS(X) \
    X(abi) X(last_report) X(last_fault) X(next_site) X(next_arrays) X(trace) X(trace_read) X(next_timer) X(take_times) \
    X(name_allocation) X(bookkeeping) X(allocated) X(unused) X(set_checks) X(checks) X(set_site) X(set_interrupt) X(set_print) \
    X(end) X(reset) X(take_races) X(check_names) X(find_checks) X(take_findings) X(race_statistics) X(leaks) X(call_count) \
    X(profile) X(profile_read)
// clang-format on

/// All pointers are non-null once loaded. Thread-safe.
struct EmulatedFunctions {
#define BASCULE_DECLARE(name) decltype(&bascule_emulated_##name) name = nullptr;
    BASCULE_EMULATED_FUNCTIONS(BASCULE_DECLARE)
#undef BASCULE_DECLARE

    /// The reason for the last failed call; empty if none failed.
    std::string newest_report() const;
    /// The newest fault that lost a context. Its report is empty if there was none.
    EmulatedFault newest_fault() const;
    /// The memory that kernels allocated and nothing has freed.
    std::vector<EmulatedLeak> live_allocations() const;
    /// One report for each race found since the last call.
    std::vector<std::string> new_races() const;
    /// The findings of the checks of kernels since the last call.
    std::vector<EmulatedFinding> new_findings() const;
    /// The same as a JSON array (bascule_emulated_take_findings).
    std::string new_findings_as_json() const;
    /// What kernels executed since the profile was started: a JSON array (bascule_emulated_profile_read).
    std::string profile_so_far() const;
};

/// Opens the library. Searches the directory of the binary that contains this code, the lib directories next to it, the
/// binary's run path, and the loader's paths. Throws: LibraryError that lists every path tried.
DynamicLibrary open_emulated_library();

/// True if a library is the emulated device, whatever its file name.
bool is_emulated_library(const DynamicLibrary& library) noexcept;

/// Throws: LibraryError if the library has another version.
EmulatedFunctions find_emulated_functions(const DynamicLibrary& library);

}  // namespace bascule
