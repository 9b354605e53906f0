// The state of the driver in this process: devices, contexts, handles and memory.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <cuda.h>

#include "driver/device_limits.hpp"
#include "driver/device_view.hpp"
#include "driver/environment.hpp"
#include "driver/handles.hpp"
#include "driver/memory_pool.hpp"
#include "emulated_abi.h"
#include "heap/kernel_heap.hpp"
#include "machine/grid.hpp"
#include "memory/heap.hpp"
#include "memory/images.hpp"
#include "program/loaded_module.hpp"
#include "streams/capture.hpp"
#include "streams/graph.hpp"
#include "streams/shared_mark.hpp"

namespace emulated::driver {

struct Context;

/// The object of a CUstream.
struct Stream {
    streams::Stream stream;
    streams::CapturingStream capture;
    Context* context = nullptr;
    unsigned flags = CU_STREAM_DEFAULT;
    int priority = 0;
    std::uint64_t id = 0;
};

/// The object of a CUevent.
struct Event {
    streams::Event event;
    streams::CapturedMark capture;
    Context* context = nullptr;
    bool timing = true;
    std::shared_ptr<streams::SharedMark> shared;  ///< null unless other processes use it
    std::atomic<std::uint64_t> newest_here{0};  ///< the last record by this process, in the count of `shared`
};

/// A library's variables in one context: the address of each, by index.
using Instance = std::vector<memory::DeviceAddress>;

struct Library;

/// The object of a CUkernel or CUfunction. A library's CUkernel and its CUfunctions share `settings`.
struct KernelHandle {
    struct Settings {
        /// The maximum dynamic shared memory per launch, by device; -1: 48 KB less the static shared memory.
        std::array<std::atomic<int>, most_devices> max_dynamic_shared_bytes;
        /// True if clusters may exceed the portable size of 8 blocks, by device.
        std::array<std::atomic<bool>, most_devices> takes_large_clusters{};
        Settings() {
            for (auto& each : max_dynamic_shared_bytes) each.store(-1);
        }
    };
    const program::Kernel* kernel = nullptr;
    std::shared_ptr<Library> library;  ///< keeps `kernel`; an unload breaks the cycle
    Context* context = nullptr;  ///< of a CUfunction; null for a CUkernel, which runs in the current context
    std::shared_ptr<Settings> settings;
};

/// A part of a library that is loaded into a context at its first use: a kernel, or the variables if null.
using LoadedPart = std::pair<const program::Kernel*, const Context*>;

/// The object of a CUlibrary or CUmodule.
struct Library {
    std::shared_ptr<const program::Module> module;
    std::string refusal;                ///< why the PTX was refused; `module` is empty then
    Context* context = nullptr;         ///< of a CUmodule; null for a CUlibrary, which serves every context
    std::atomic<bool> unloaded{false};  ///< launches that have not run by then are faults
    std::mutex mutex;                   // guards the members below
    std::set<LoadedPart> loaded;        ///< used with lazy loading
    std::map<Context*, std::shared_ptr<const Instance>> instances;  ///< made at first use in a context
    std::map<std::pair<const program::Kernel*, Context*>, std::shared_ptr<KernelHandle>> kernels;
};

/// The kernel launch that failed. The name is empty if another operation failed.
struct FaultedLaunch {
    std::string kernel{};
    machine::Fault::Lack lack{};
    std::uint64_t stream = 0;  ///< the handle that the caller passed
    std::uint64_t site = 0;    ///< the place in the program that launched it
};

/// The object of a CUcontext. Never deleted, so that the handle of a destroyed context is safe to look up; `alive` is false
/// then.
struct Context {
    Context(int device_ordinal, bool is_primary, std::uint64_t number, streams::Scheduler& scheduler,
            memory::Heap& heap, memory::HostPages* host_pages)
        : device(device_ordinal),
          primary(is_primary),
          id(number),
          graph(scheduler),
          memory(heap, {device_ordinal, is_primary ? 0 : number}, host_pages),
          kernel_heap(heap, device_ordinal, is_primary ? 0 : number) {
        legacy.context = this;
        legacy.id = 1;
    }

    const int device;
    const bool primary;
    const std::uint64_t id;
    std::atomic<bool> alive{false};
    std::atomic<CUresult> error{
        CUDA_SUCCESS};  ///< sticky: the first fault, until a destruction or reset clears it
    /// The error of an operation that was not executed, returned by the next call that waits. The context stays usable.
    std::atomic<CUresult> passing_error{CUDA_SUCCESS};
    std::atomic<bool> interrupted{false};  ///< `error` was caused by an interrupt that the program asked for
    std::atomic<unsigned> flags{0};
    std::atomic<int> references{0};  ///< counted for a primary context
    streams::Graph graph;
    DeviceView memory;  ///< its address space
    heap::KernelHeap kernel_heap;
    Stream legacy;     ///< its `stream` member is unused; `graph` has the legacy stream
    std::mutex mutex;  // guards the members below
    std::unordered_map<std::uint64_t, std::shared_ptr<Stream>> per_thread;  ///< by thread_number()
    std::vector<memory::DeviceAddress> workspaces;  ///< workspaces of completed cooperative grids
    std::map<int, std::size_t> limits;              ///< CUlimit -> what was set

    /// Records a fault. Later operations are not executed, as on a GPU. Only the first fault and its report are kept.
    void fail(CUresult code, std::string report, const FaultedLaunch& launch = {});
    /// The error that a call returns after a wait: `error`, or `passing_error`, which is cleared, or the error of a reset
    /// that dropped what it waited for.
    CUresult take_error() noexcept;
    /// The value that was set, or `otherwise`.
    std::size_t limit(CUlimit which, std::size_t otherwise) {
        const std::lock_guard lock(mutex);
        const auto set = limits.find(which);
        return set == limits.end() ? otherwise : set->second;
    }
    /// True if work that a call enqueued is still to be executed. `resets_before` is resets_before_call() of that call.
    bool executes(std::uint64_t resets_before) const noexcept;
};

/// The state of the process. Never destroyed, because calls may come until the very end. A forked child has no state,
/// because threads and locks do not survive a fork, and neither does a GPU's context.
class Process {
  public:
    static Process& get();

    bool initialised() const noexcept { return initialised_.load(std::memory_order_acquire); }
    /// cuInit. Fails if an environment variable has an invalid value, and in a forked process.
    CUresult initialise();
    int devices() const noexcept { return environment_.devices; }
    bool is_device(int device) const noexcept { return device >= 0 && device < devices(); }
    /// True if another process has exclusive use of the device (CU_COMPUTEMODE_EXCLUSIVE_PROCESS).
    bool is_busy(int device) const noexcept { return (environment_.busy >> device & 1) != 0; }
    /// Called when a kernel was enqueued. Without concurrent managed access, the host may not access managed memory
    /// until `host_has_waited` finds nothing pending.
    void kernel_enqueued() {
        if (managed_guard_ != nullptr) managed_guard_->close();
    }
    void host_has_waited();
    const Environment& environment() const noexcept { return environment_; }
    /// True if memory that kernels did not free is listed on stderr when a context or the process ends.
    std::atomic<checks::Checks> checks{0};
    memory::Heap& heap() noexcept { return *heap_; }
    streams::Scheduler& scheduler() noexcept { return scheduler_; }
    Handles& handles() noexcept { return handles_; }
    memory::ImageObjects& images() noexcept { return images_; }

    Context& primary(int device) { return *contexts_[static_cast<std::size_t>(device)]; }
    Context& create_context(int device);
    /// Executes what is pending, then frees everything that belongs to the context.
    void destroy_context(Context& context);
    std::vector<Context*> contexts();
    /// Drops pending work in the contexts of a device and loses its memory (bascule_emulated_reset).
    void reset(int device);
    /// The number of resets. Graphs captured before the last one use lost memory.
    static std::uint64_t resets() noexcept;

    /// Drops pending work in all contexts, ends running work soon, and sets an error on the contexts concerned.
    void drop_pending();
    /// Prepares for the end of the process. Waits up to `left` for pending work, then drops it. If `left` is zero, the
    /// work stays pending.
    void end_soon(std::chrono::milliseconds left);

    /// Remembers which context an allocation belongs to, until `free` or the end of the context.
    void own(memory::DeviceAddress address, memory::Allocation::Kind kind, Context& context,
             PoolShare share = {});
    /// Reserves the address for a graph, whose launches allocate and free memory there. The memory counts as freed
    /// until `begin_use`.
    void keep(memory::DeviceAddress address);
    void end_keeping(memory::DeviceAddress address);
    /// Notes that a graph launch allocates the memory. Returns false if it is already allocated.
    bool begin_use(memory::DeviceAddress address);
    Context* owner(memory::DeviceAddress address);
    /// Notes that a stream-ordered free was issued. Returns false if one was issued before, or if nothing is allocated
    /// there.
    bool begin_free(memory::DeviceAddress address);
    bool is_being_freed(memory::DeviceAddress address);
    /// Ends an allocation and its ownership at once, so that no thread finds only one of them, and because a host address
    /// may be reused as soon as it is free. Returns false if there is no allocation of this kind.
    bool free(memory::DeviceAddress address, memory::Allocation::Kind kind,
              memory::Heap::FreedBy by = memory::Heap::FreedBy::host);
    /// The allocation that contains this byte and is not being freed in stream order; null if there is none.
    const memory::Allocation* find_usable(memory::DeviceAddress address);
    /// The pool of an allocation; null if it is from no pool.
    PoolShare pool_of(memory::DeviceAddress address);

    /// Numbers streams and contexts. A number is never reused.
    std::uint64_t next_id() noexcept { return next_id_.fetch_add(1); }

    void set_report(std::string text);
    std::string report();
    void set_fault(std::string text, const FaultedLaunch& launch);
    /// A JSON object; emulated_abi.h lists its keys.
    std::string fault();

  private:
    Process();

    void report_leaks(const Context& context) const noexcept;
    static void forget_all_in_child() noexcept;
    static void end() noexcept;

    std::atomic<bool> initialised_{false};
    std::atomic<bool> forked_{false};
    std::atomic<std::uint64_t> next_id_{16};  // greater than the special stream handles
    const Environment environment_;
    streams::Scheduler scheduler_;
    std::unique_ptr<memory::ManagedGuard> managed_guard_;  // null if managed access is concurrent
    std::unique_ptr<memory::Heap> heap_;
    std::unique_ptr<memory::HostPages> host_pages_;  // null unless kernels may access any host memory
    Handles handles_;
    memory::ImageObjects images_;                     // textures and surfaces
    std::mutex mutex_;                                // guards the members below
    std::vector<std::unique_ptr<Context>> contexts_;  // primary ones first
    struct Owned {
        Context* context;
        memory::Allocation::Kind kind;
        PoolShare share;
        bool being_freed = false;
        bool kept = false;
    };
    std::unordered_map<memory::DeviceAddress, Owned> owners_;  // by the allocation's base
    template <class Use>
    auto with_owned(memory::DeviceAddress address, const Use& use);
    std::string report_;
    std::string fault_report_;
    FaultedLaunch faulted_;
};

/// A thread's stack of contexts. The last is current and may be null. It has no destructor, because destructors that run
/// later at the thread's end may still use it.
class ContextStack {
  public:
    bool empty() const noexcept { return depth_ == 0; }
    Context* current() const noexcept { return depth_ == 0 ? nullptr : contexts_[depth_ - 1]; }
    /// Returns false if the stack is full.
    bool push(Context* context) noexcept {
        if (depth_ == contexts_.size()) return false;
        contexts_[depth_++] = context;
        return true;
    }
    void pop() noexcept {
        if (depth_ > 0) --depth_;
    }

  private:
    std::array<Context*, 64> contexts_{};
    std::size_t depth_ = 0;
};

/// Returns null if the handle is not a context. Also finds destroyed contexts, whose `alive` is false.
Context* find_context(CUcontext handle);

/// CUDA_SUCCESS, or why a context cannot be used. Ignores faults in it.
inline CUresult state_of(const Context* context) noexcept {
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    return context->alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/// Like `state_of`, but also returns the context's error after a fault.
inline CUresult usable(const Context* context) noexcept {
    const CUresult state = state_of(context);
    return state == CUDA_SUCCESS ? context->error.load(std::memory_order_acquire) : state;
}

/// CUDA_SUCCESS, or why the calling thread may not call functions that need a context.
inline CUresult may_use_contexts() noexcept {
    if (!Process::get().initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    return streams::Scheduler::inside() ? CUDA_ERROR_NOT_PERMITTED
                                        : CUDA_SUCCESS;  // a host function called the driver
}

ContextStack& context_stack() noexcept;
Context* current_context() noexcept;

/// A number that no other thread has or had.
std::uint64_t thread_number();

inline bool is_default(CUstream handle) noexcept {
    return handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
}

/// Resolves a stream handle for the calling thread: 1 is the current context's legacy stream, 2 is the thread's own
/// stream. NULL is 2 in the _ptsz and _ptds variants of functions, otherwise 1.
struct StreamTarget {
    CUresult state = CUDA_SUCCESS;  ///< if it is an error, nothing else is set
    Context* context = nullptr;
    std::shared_ptr<Stream> owner;  ///< keeps the stream alive; null for the legacy stream
    streams::Stream* stream = nullptr;

    explicit StreamTarget(CUstream handle);
    const Stream& properties() const noexcept { return owner == nullptr ? context->legacy : *owner; }

  private:
    CUresult find(CUstream handle);
};

/// The state that StreamTarget would have, for queries that do nothing with the stream. Takes no lock for a stream that the
/// thread asked about recently, like a driver.
CUresult stream_state(CUstream handle);

/// The limits of the emulated architecture.
inline const limits::Architecture& architecture_limits() noexcept {
    return limits::architecture(Process::get().environment().architecture);
}

}  // namespace emulated::driver
