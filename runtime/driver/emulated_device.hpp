// The emulated device's own functions, and where its library is. Nothing of the emulated device is linked:
// it is loaded like a driver.
#pragma once

#include <string>
#include <vector>

#include <bascule/jit/process/dynamic_library.hpp>
#include <bascule/runtime/emulator/emulated_abi.h>

namespace bascule {

/// A fault, its launch, and its report.
struct EmulatedFault : BasculeEmulatedFault {
    std::string report;
};

/// The functions of emulated_abi.h, all non-null once loaded. Thread-safe, as they are.
struct EmulatedFunctions {
    decltype(&bascule_emulated_abi) abi = nullptr;
    decltype(&bascule_emulated_last_report) last_report = nullptr;
    decltype(&bascule_emulated_last_fault) last_fault = nullptr;
    decltype(&bascule_emulated_next_site) next_site = nullptr;
    decltype(&bascule_emulated_trace) trace = nullptr;
    decltype(&bascule_emulated_trace_read) trace_read = nullptr;
    decltype(&bascule_emulated_next_timer) next_timer = nullptr;
    decltype(&bascule_emulated_take_times) take_times = nullptr;
    decltype(&bascule_emulated_name_allocation) name_allocation = nullptr;
    decltype(&bascule_emulated_bookkeeping) bookkeeping = nullptr;
    decltype(&bascule_emulated_set_checks) set_checks = nullptr;
    decltype(&bascule_emulated_checks) checks = nullptr;
    decltype(&bascule_emulated_set_site) set_site = nullptr;
    decltype(&bascule_emulated_set_interrupt) set_interrupt = nullptr;
    decltype(&bascule_emulated_set_print) set_print = nullptr;
    decltype(&bascule_emulated_end) end = nullptr;
    decltype(&bascule_emulated_reset) reset = nullptr;
    decltype(&bascule_emulated_take_races) take_races = nullptr;
    decltype(&bascule_emulated_race_statistics) race_statistics = nullptr;
    decltype(&bascule_emulated_call_count) call_count = nullptr;

    /// Why a call failed last, "" when none did.
    std::string newest_report() const;
    /// The newest fault that a context was lost by; its report is empty when there was none.
    EmulatedFault newest_fault() const;
};

/// Paths and sonames of the library in order: beside the binary that contains this code, the lib directories
/// next to it, those it was linked to search, the loader's own.
std::vector<std::string> emulated_library_candidates();

/// Opens the library. Throws: LibraryError that lists every path tried.
DynamicLibrary open_emulated_library();

/// Throws: LibraryError for a library of another version.
EmulatedFunctions find_emulated_functions(const DynamicLibrary& library);

}  // namespace bascule
