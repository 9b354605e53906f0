// A grid: what is asked for, and the fault that may end it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "memory/images.hpp"
#include "memory/memory.hpp"
#include "program/module.hpp"
#include "races/access_log.hpp"

namespace emulated::machine {

class DeviceHeap;  // machine/device_heap.hpp

struct Dim3 {
    std::uint32_t x = 1, y = 1, z = 1;
    bool operator==(const Dim3&) const = default;
    constexpr std::uint64_t count() const noexcept { return std::uint64_t{x} * y * z; }
};

/// What cooperative_groups keeps in a grid's workspace: its size, and the word of the grid's barrier.
inline constexpr std::size_t workspace_bytes = 64;

/// How long a kernel may run.
struct TimeLimits {
    static constexpr std::chrono::nanoseconds none = std::chrono::nanoseconds::max();
    /// Of a block, without progress (machine/watchdog).
    std::chrono::nanoseconds idle = std::chrono::seconds(10);
    /// Of the whole grid, whatever it does, instead of `idle`; `none`: as long as it makes progress.
    std::chrono::nanoseconds total = none;
    /// Both, for kernels that may run for ever.
    static constexpr TimeLimits unlimited() noexcept { return {none, none}; }
};

/// Everything a grid needs; borrowed for the length of `launch`.
struct LaunchRequest {
    const program::Kernel* kernel = nullptr;  ///< not refused
    Dim3 grid, block;                         ///< already checked against the device's limits
    /// In blocks; divides the grid. One block: no clusters.
    Dim3 cluster;
    bool explicit_cluster = false;  ///< the launch or the kernel asked for clusters, perhaps of one block
    std::uint32_t dynamic_shared_bytes = 0;
    /// Per thread, for recursion (CU_LIMIT_STACK_SIZE); a small one is made larger.
    std::uint64_t stack_bytes = 0;
    const std::byte* parameters = nullptr;  ///< kernel->parameter_bytes of them, and room for 7 more
    /// The address of each of the module's globals, by index.
    const memory::DeviceAddress* globals = nullptr;
    const memory::Memory* memory = nullptr;
    DeviceHeap* heap = nullptr;                    ///< of malloc in kernels; null: kernels get no memory
    const memory::ImageObjects* images = nullptr;  ///< textures and surfaces; null: there are none
    races::AccessLog* log = nullptr;  ///< what the grid reads and writes is added; null: not asked for
    /// Device memory of a cooperative grid, at least workspace_bytes that begin as zeros; 0: its blocks do
    /// not wait for each other.
    memory::DeviceAddress workspace = 0;
    unsigned workers = 1;                                 ///< threads that share the blocks out
    std::function<void(const char*, std::size_t)> print;  ///< where device printf goes; stdout when empty
    /// Gives the condition of a handle a value; false where there is none. Empty: there are none.
    std::function<bool(std::uint64_t, std::uint32_t)> set_condition;
    TimeLimits limits;
    /// Asked every few milliseconds, by any of the threads that run blocks or wait for them; true ends the grid.
    /// Never when empty.
    std::function<bool()> cancelled;
};

/// A line of the source, from .file and .loc.
struct SourceLine {
    std::string file;        ///< empty when unknown
    std::uint32_t line = 0;  ///< 0 when unknown
};

/// Where a thread stood.
struct FaultPlace : SourceLine {
    Dim3 thread{0, 0, 0};
    std::uint32_t ptx_line = 0;
    SourceLine caller;  ///< of inlined code; its line is 0 otherwise
};

/// What went wrong, and where the first thread that did it stood. The owner of the memory describes the
/// address.
struct Fault : FaultPlace {
    using Place = FaultPlace;
    enum class Kind : std::uint8_t {
        illegal_address,        ///< CUDA_ERROR_ILLEGAL_ADDRESS (700)
        misaligned_address,     ///< 716
        invalid_address_space,  ///< 717
        invalid_pc,             ///< 718: a call through a pointer to no function
        stack_error,            ///< 700: calls nested deeper than the stack allows
        no_cluster,             ///< 715: an instruction for clusters in a launch without
        launch_failed,          ///< 719: divergent barrier
        invalid_free,           ///< 719: of what malloc did not return, or twice
        bad_image,              ///< 700: a texture or surface object that is none, or another kind
        assertion,              ///< 710
        illegal_instruction,    ///< 715: trap
        timeout,                ///< 702
        cancelled,              ///< LaunchRequest::cancelled was true
    };
    /// What the launch lacked.
    enum class Lack : std::uint8_t { nothing, dynamic_shared_bytes, cooperation };
    Kind kind = Kind::launch_failed;
    Lack lack = Lack::nothing;
    std::string kernel;  ///< mangled name as in the PTX
    Dim3 block{0, 0, 0};
    memory::DeviceAddress address = 0;  ///< of the access, when there is one
    std::uint32_t access_bytes = 0;     ///< 0: not a memory access
    bool write = false;
    const char* space = "";           ///< "global", "shared", "local", "const", "generic"
    std::uint64_t other_threads = 0;  ///< how many more of the block did the same
    std::vector<Place> waiting = {};  ///< where other threads of the block wait
    std::optional<Place> loop = {};   ///< where the innermost loop around the place begins
    std::string message = {};         ///< one sentence more, without places; may be empty
};

/// What all workers of a launch share.
struct GridState {
    const LaunchRequest* request = nullptr;
    const program::Code* code = nullptr;
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
    std::uint32_t alone_budget = 0;  ///< backward branches and calls between two looks at the clock
    std::uint64_t blocks = 0;
    std::atomic<std::uint64_t> next_block{0};
    std::atomic<bool> cancelled{false};
    std::mutex mutex;  ///< guards `fault`, the first one
    std::optional<Fault> fault;

    /// Ends the grid.
    void fail(Fault found) {
        const std::lock_guard lock(mutex);
        if (!fault) fault = std::move(found);
        cancelled = true;
    }

    /// For a thread that waits for those that run blocks: is the grid still wanted?
    void ask() {
        if (request->cancelled && request->cancelled()) cancelled = true;
    }
};

}  // namespace emulated::machine
