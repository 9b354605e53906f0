// The emulated device's own functions, and where its library is. Nothing of the emulated device is linked:
// it is loaded like a driver.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <bascule/jit/process/dynamic_library.hpp>
#include <bascule/runtime/emulator/emulated_abi.h>

namespace bascule {

/// A fault and its launch.
struct EmulatedFault {
    enum class Lack : std::uint8_t { nothing, shared_bytes, cooperation };

    std::string report{};
    std::string kernel{};       ///< empty where another operation failed, such as a copy: the rest is 0 then
    Lack lack = Lack::nothing;  ///< what the launch lacked that its kernel needed
    std::uint64_t stream = 0;   ///< the handle as the launch gave it
    std::uint64_t site = 0;     ///< LaunchSite's number
};

/// What one line of a kernel allocated, with malloc or new, and nothing has freed.
struct EmulatedLeak {
    std::string kernel;
    std::string place;        ///< "line 7 of k.cu", the file as NVRTC was told
    std::uint64_t count = 0;  ///< of allocations
    std::uint64_t bytes = 0;
};

// clang-format off
/// The functions of emulated_abi.h that Bascule calls.
#define BASCULE_EMULATED_FUNCTIONS(X) \
    X(abi) X(last_report) X(last_fault) X(next_site) X(trace) X(trace_read) X(next_timer) X(take_times) \
    X(name_allocation) X(bookkeeping) X(allocated) X(unused) X(set_checks) X(checks) X(set_site) X(set_interrupt) X(set_print) \
    X(end) X(reset) X(take_races) X(race_statistics) X(leaks) X(call_count)
// clang-format on

/// All non-null once loaded. Thread-safe, as they are.
struct EmulatedFunctions {
#define BASCULE_DECLARE(name) decltype(&bascule_emulated_##name) name = nullptr;
    BASCULE_EMULATED_FUNCTIONS(BASCULE_DECLARE)
#undef BASCULE_DECLARE

    /// Why a call failed last, "" when none did.
    std::string newest_report() const;
    /// The newest fault that a context was lost by; its report is empty when there was none.
    EmulatedFault newest_fault() const;
    /// What kernels allocated and nothing has freed.
    std::vector<EmulatedLeak> live_allocations() const;
    /// A report of each race found since the last call.
    std::vector<std::string> new_races() const;
};

/// Opens the library: beside the binary that contains this code, in the lib directories next to it, in those it was linked
/// to search, or where the loader looks. Throws: LibraryError that lists every path tried.
DynamicLibrary open_emulated_library();

/// Whether a library is the emulated device, under whatever name it was loaded.
bool is_emulated_library(const DynamicLibrary& library) noexcept;

/// Throws: LibraryError for a library of another version.
EmulatedFunctions find_emulated_functions(const DynamicLibrary& library);

}  // namespace bascule
