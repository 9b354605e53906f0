// The optional checks of kernels, and what one of them found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "machine/grid.hpp"

namespace emulated::machine {
struct Execution;
}

namespace emulated::checks {

// clang-format off
/// Each check: its bit, its name for users, whether "all" includes it, and what it finds. Memory errors are always found.
#define BASCULE_CHECKS(CHECK) \
    CHECK(races, 0, true, "operations on different streams that access the same bytes unordered") \
    CHECK(leaks, 1, false, "memory that kernels allocate and do not free") \
    CHECK(init, 2, true, "values that nothing has written and that a kernel uses") \
    CHECK(shared_races, 3, true, "unordered accesses to shared memory by threads of a block") \
    CHECK(global_races, 4, true, "unordered accesses to global memory by threads of a grid") \
    CHECK(sync, 5, true, "barriers that some threads do not reach, and warp operations that name absent lanes") \
    CHECK(async, 6, true, "reads of data that an asynchronous copy has not delivered") \
    CHECK(arrays, 7, true, "accesses outside of the array that the kernel indexes, inside of another one") \
    CHECK(division, 8, true, "integer divisions by zero") \
    CHECK(restrict_, 9, true, "writes to memory that another __restrict__ pointer reads") \
    CHECK(grid, 10, false, "arrays of which a launch has left elements untouched")
// clang-format on

enum class Check : std::uint32_t {
#define CHECK(name, bit, in_all, finds) name = 1u << bit,
    BASCULE_CHECKS(CHECK)
#undef CHECK
};

/// A set of checks; bits as in emulated_abi.h.
using Checks = std::uint32_t;
constexpr bool has(Checks checks, Check check) noexcept {
    return (checks & static_cast<std::uint32_t>(check)) != 0;
}

/// Those that observe the instructions of kernels.
inline constexpr Checks observing = ~Checks{3};

/// The names in the order of their bits, separated by commas: "races,leaks,init,...".
std::string_view names() noexcept;
/// "memory", "all" or a name of a check.
std::optional<Checks> find(std::string_view name) noexcept;
/// The union of a list with commas; nullopt if one of its names is unknown.
std::optional<Checks> parse(std::string_view list) noexcept;
std::string_view name_of(Check check) noexcept;

/// A thread and what it did, for the two sides of a race.
struct Deed : machine::FaultPlace {
    machine::Dim3 block{0, 0, 0};
    std::string what;  ///< "wrote 4 bytes"
};

/// A thread and the instruction that it executed, to make a Deed of later.
struct ThreadPlace {
    std::uint32_t pc = 0, thread = 0;  ///< the linear index of the thread in its block
    machine::Dim3 block{0, 0, 0};
};
ThreadPlace thread_place(const machine::Execution& execution, unsigned lane);
Deed deed_of(const program::Code& code, const ThreadPlace& place, const machine::Dim3& block_shape,
             std::string what);
/// The thread of a lane that executes an instruction; `what` is empty.
Deed deed_of(const machine::Execution& execution, unsigned lane, const machine::Dim3& block_shape);

/// One place in a kernel where a check failed.
struct Finding {
    Check check = Check::init;
    std::uint32_t pc = 0, other_pc = ~0u;  ///< instructions; a pair of them is reported once
    Deed first;                            ///< the thread that is reported, and the sentence of the report
    std::optional<Deed> other{};           ///< the other side of a race
    std::uint64_t address = 0;             ///< of the first thread's access; 0: there is none
    std::uint32_t bytes = 0;
    std::string_view space = "";  ///< "global", "shared", "local"
    std::string advice{};         ///< what to write instead
};

/// An array that a launch passes as a pointer.
struct ArrayArgument {
    std::uint32_t parameter = 0;  ///< its index
    std::uint32_t itemsize = 0;   ///< 0: unknown
    std::uint64_t first = 0, bytes = 0;
    std::string name{};  ///< of the parameter, if known
};
/// "the array 'x' (argument 1, 40 bytes)".
std::string describe_array(const ArrayArgument& array);

/// A launch, for reports.
struct LaunchName {
    std::string kernel;                   ///< demangled
    std::uint64_t stream = 0;             ///< the handle that the caller passed
    std::uint64_t site = 0;               ///< the place in the program that launched it
    std::vector<ArrayArgument> arrays{};  ///< the arguments that are known to be arrays
    /// The values of the kernel's parameters that have 8 bytes; 0 for the others.
    std::vector<std::uint64_t> arguments{};
};

/// Adds a finding, or `threads` to the count of an earlier one of the same kernel, check and place. Thread-safe.
void report(const LaunchName& launch, Finding finding, std::uint64_t threads = 1);

/// The findings since the last call, one JSON object each; see bascule_emulated_take_findings. `keep`: they stay.
std::vector<std::string> take_findings(bool keep);

/// The reports of the findings since the last call, as text.
std::vector<std::string> take_reports();

/// Describes an address of global memory for reports.
using Describe = std::string (*)(std::uint64_t address, std::uint64_t bytes);
/// The first address of the allocation that contains an address; 0 if none does.
using BaseOf = std::uint64_t (*)(std::uint64_t address);
void describe_with(Describe describe, BaseOf base_of) noexcept;

}  // namespace emulated::checks
