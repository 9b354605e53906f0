// A grid: the launch request, and the fault that may end it.
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
#include "memory/seen_tensor_maps.hpp"
#include "memory/shadow.hpp"
#include "program/loaded_module.hpp"
#include "races/access_log.hpp"

namespace emulated::machine {

struct Dim3 {
    std::uint32_t x = 1, y = 1, z = 1;
    bool operator==(const Dim3&) const = default;
    constexpr std::uint64_t count() const noexcept { return std::uint64_t{x} * y * z; }
};

class Observers;

/// The size of the workspace that cooperative_groups uses for a grid. It holds the word of the grid's barrier.
inline constexpr std::size_t workspace_bytes = 64;

/// Limits on the running time of a kernel.
struct TimeLimits {
    static constexpr std::chrono::nanoseconds none = std::chrono::nanoseconds::max();
    /// The limit for a block without progress (machine/watchdog).
    std::chrono::nanoseconds idle = std::chrono::seconds(10);
    /// The limit for the whole grid. Replaces `idle` unless it is `none`.
    std::chrono::nanoseconds total = none;
    /// For kernels that may run for ever.
    static constexpr TimeLimits unlimited() noexcept { return {none, none}; }
};

/// A line of the source, from .file and .loc.
struct SourceLine {
    std::string file;        ///< empty when unknown
    std::uint32_t line = 0;  ///< 0 when unknown
};

/// The heap that malloc, free, new and delete in kernels use. Memory outlives the kernel that allocated it.
/// Thread-safe: workers call it concurrently.
class DeviceHeap {
  public:
    virtual ~DeviceHeap() = default;

    /// Allocates at least `bytes`, aligned to 16 and to `alignment`, a power of two. Returns 0 if the heap is full.
    virtual memory::DeviceAddress allocate(std::uint64_t bytes, std::uint64_t alignment,
                                           const SourceLine& line) = 0;
    /// Frees memory. Returns an empty string, or a clause that says why it cannot: "the memory there is already freed".
    virtual std::string free(memory::DeviceAddress address, const SourceLine& line) = 0;
};

/// Everything a grid needs. Borrowed until `launch` returns.
struct LaunchRequest {
    const program::Kernel* kernel = nullptr;  ///< its PTX is supported
    Dim3 grid, block;                         ///< already checked against the device's limits
    /// In blocks; divides the grid. One block means no clusters.
    Dim3 cluster;
    bool explicit_cluster = false;  ///< the launch or the kernel asked for clusters, possibly of one block
    std::uint32_t dynamic_shared_bytes = 0;
    /// Bytes per thread, for recursion (CU_LIMIT_STACK_SIZE). Values below the minimum are raised.
    std::uint64_t stack_bytes = 0;
    const std::byte* parameters = nullptr;  ///< kernel->parameter_bytes, then 7 readable bytes
    /// The address of each of the module's globals, by index.
    const memory::DeviceAddress* globals = nullptr;
    const memory::Memory* memory = nullptr;
    const memory::Shadow* shadow = nullptr;        ///< for the check of uninitialised values
    DeviceHeap* heap = nullptr;                    ///< for malloc in kernels; if null, malloc returns null
    const memory::ImageObjects* images = nullptr;  ///< textures and surfaces; may be null
    races::AccessLog* log = nullptr;  ///< receives the grid's accesses; null if they are not logged
    Observers* observers = nullptr;   ///< see the grid's instructions (machine/observer.hpp); may be null
    /// Device memory of a cooperative grid, at least workspace_bytes, initially zero. 0: the blocks do not wait for each
    /// other.
    memory::DeviceAddress workspace = 0;
    unsigned workers = 1;                                 ///< threads that run the blocks
    std::function<void(const char*, std::size_t)> print;  ///< output of device printf; stdout if empty
    /// Sets the value of a conditional handle. Returns false if there is no such handle. Empty if the launch has no
    /// conditions.
    std::function<bool(std::uint64_t, std::uint32_t)> set_condition;
    TimeLimits limits;
    /// Called every few milliseconds by any thread that runs or waits for blocks. Returning true ends the grid. May be
    /// empty.
    std::function<bool()> cancelled;
};

/// The position of a thread in source and PTX.
struct FaultPlace : SourceLine {
    Dim3 thread{0, 0, 0};
    std::uint32_t ptx_line = 0;
    SourceLine caller;  ///< the line that calls inlined code; otherwise line 0
};

/// A fault and the position of the first thread that caused it. The caller describes the address.
struct Fault : FaultPlace {
    using Place = FaultPlace;
    enum class Kind : std::uint8_t {
        illegal_address,        ///< CUDA_ERROR_ILLEGAL_ADDRESS (700)
        misaligned_address,     ///< 716
        invalid_address_space,  ///< 717
        invalid_pc,             ///< 718: a call through a pointer that is not a function's
        stack_error,            ///< 700: calls nested deeper than the stack allows
        no_cluster,             ///< 715: an instruction for clusters in a launch without
        launch_failed,          ///< 719: a divergent or invalid barrier
        misuse,                 ///< 719: another instruction that is used wrongly
        invalid_free,           ///< 719: free of a pointer that malloc did not return, or a second time
        bad_tensor,             ///< 715: a wrong use of a tensor map
        bad_image,              ///< 700: an invalid texture or surface object, or one of another kind
        assertion,              ///< 710
        illegal_instruction,    ///< 715: trap
        timeout,                ///< 702
        cancelled,              ///< LaunchRequest::cancelled was true
    };
    /// What the launch lacked, if that caused the fault.
    enum class Lack : std::uint8_t { nothing, dynamic_shared_bytes, cooperation };
    Kind kind = Kind::launch_failed;
    Lack lack = Lack::nothing;
    std::string kernel;  ///< mangled name as in the PTX
    Dim3 block{0, 0, 0};
    memory::DeviceAddress address = 0;  ///< of the access, if there is one
    std::uint32_t access_bytes = 0;     ///< 0: not a memory access
    bool write = false;
    const char* space = "";           ///< "global", "shared", "local", "const", "generic"
    std::uint64_t other_threads = 0;  ///< further threads of the block with the same fault
    std::vector<Place> waiting = {};  ///< positions of other threads of the block that wait
    std::optional<Place> loop = {};   ///< the start of the innermost loop around the position
    std::string message = {};         ///< a further sentence, without positions; may be empty
};

/// State shared by all workers of a launch.
struct GridState {
    const LaunchRequest* request = nullptr;
    const program::Code* code = nullptr;
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
    std::uint32_t alone_budget = 0;  ///< backward branches and calls between two looks at the clock
    std::uint64_t blocks = 0;
    std::atomic<std::uint64_t> next_block{0};
    std::atomic<bool> cancelled{false};
    memory::SeenTensorMaps seen_tensor_maps;
    std::mutex mutex;  ///< guards `fault`, which is the first one
    std::optional<Fault> fault;

    /// Records the fault, if it is the first, and ends the grid.
    void fail(Fault found) {
        const std::lock_guard lock(mutex);
        if (!fault) fault = std::move(found);
        cancelled = true;
    }

    /// For a thread that waits for workers: ends the grid if it is no longer wanted.
    void ask() {
        if (request->cancelled && request->cancelled()) cancelled = true;
    }
};

}  // namespace emulated::machine
