// What the driver knows of this process: devices, contexts, handles, memory.
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

#include "driver/device_view.hpp"
#include "driver/environment.hpp"
#include "driver/handles.hpp"
#include "driver/limits.hpp"
#include "driver/memory_pool.hpp"
#include "emulated_abi.h"
#include "heap/kernel_heap.hpp"
#include "machine/grid.hpp"
#include "memory/heap.hpp"
#include "memory/images.hpp"
#include "program/module.hpp"
#include "streams/capture.hpp"
#include "streams/graph.hpp"
#include "streams/shared_mark.hpp"

namespace emulated::driver {

struct Context;

/// What a CUstream points to.
struct Stream {
    static constexpr HandleKind kind = HandleKind::stream;
    streams::Stream stream;
    streams::CapturingStream capture;
    Context* context = nullptr;
    unsigned flags = CU_STREAM_DEFAULT;
    int priority = 0;
    std::uint64_t id = 0;
};

/// What a CUevent points to.
struct Event {
    static constexpr HandleKind kind = HandleKind::event;
    streams::Event event;
    streams::CapturedMark capture;
    Context* context = nullptr;
    bool timing = true;
    std::shared_ptr<streams::SharedMark> shared;  ///< null unless other processes use it
    std::atomic<std::uint64_t> newest_here{0};  ///< the last record by this process, as `shared` counts them
};

/// A library's variables in one context: the address of each, by index.
using Instance = std::vector<memory::DeviceAddress>;

struct Library;

/// What a CUkernel, and a CUfunction, points to. A library's CUkernel and its CUfunctions share `settings`.
struct KernelHandle {
    static constexpr HandleKind kind = HandleKind::kernel;
    struct Settings {
        /// Dynamic shared memory a launch may ask for, by device; -1: what 48 KB leave beside static memory.
        std::array<std::atomic<int>, most_devices> max_dynamic_shared_bytes;
        /// Whether clusters may have more blocks than every device with clusters takes, by device.
        std::array<std::atomic<bool>, most_devices> takes_large_clusters{};
        Settings() {
            for (auto& each : max_dynamic_shared_bytes) each.store(-1);
        }
    };
    const program::Kernel* kernel = nullptr;
    std::shared_ptr<Library> library;  ///< keeps `kernel`; they let go of each other at the unload
    Context* context = nullptr;  ///< of a CUfunction; null for a CUkernel, which runs in the current context
    std::shared_ptr<Settings> settings;
};

/// A part of a library that is loaded into a context at its first use: a kernel, or (null) the variables.
using LoadedPart = std::pair<const program::Kernel*, const Context*>;

/// What a CUlibrary, and a CUmodule, points to.
struct Library {
    static constexpr HandleKind kind = HandleKind::library;
    std::shared_ptr<const program::Module> module;
    std::string refusal;                ///< why its PTX was refused, of which it has nothing then
    Context* context = nullptr;         ///< of a CUmodule; null for a CUlibrary, which serves every context
    std::atomic<bool> unloaded{false};  ///< launches that have not run by then are faults
    std::mutex mutex;                   // of what follows
    std::set<LoadedPart> loaded;        ///< with lazy loading
    std::map<Context*, std::shared_ptr<const Instance>> instances;  ///< made at first use in a context
    std::map<std::pair<const program::Kernel*, Context*>, std::shared_ptr<KernelHandle>> kernels;
};

/// The launch of a kernel that has failed; without a name where another operation has.
struct FaultedLaunch {
    std::string kernel{};
    machine::Fault::Lack lack{};
    std::uint64_t stream = 0;  ///< the handle as it was given
    std::uint64_t site = 0;    ///< where the program launched it
};

/// What a CUcontext points to. Never deleted, so that a handle to a destroyed context stays harmless; `alive`
/// tells.
struct Context {
    static constexpr HandleKind kind = HandleKind::context;
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
    std::atomic<CUresult> error{CUDA_SUCCESS};  ///< sticky: the first fault stays until the context goes
    /// Of an operation that was not done, for the next call that waits; the context goes on.
    std::atomic<CUresult> passing_error{CUDA_SUCCESS};
    std::atomic<bool> interrupted{false};  ///< `error` is the program's own wish
    std::atomic<unsigned> flags{0};
    std::atomic<int> references{0};  ///< of a primary context
    streams::Graph graph;
    DeviceView memory;  ///< its address space
    heap::KernelHeap kernel_heap;
    Stream legacy;     ///< its `stream` member is unused: the graph has it
    std::mutex mutex;  // of what follows
    std::unordered_map<std::uint64_t, std::shared_ptr<Stream>> per_thread;  ///< by thread_number()
    std::vector<memory::DeviceAddress> workspaces;  ///< of cooperative grids that are done
    std::map<int, std::size_t> limits;              ///< CUlimit -> what was set

    /// A fault: what comes later is not executed any more, as on a GPU. The first one stays, with its report.
    void fail(CUresult code, std::string report, const FaultedLaunch& launch = {});
    /// What a call that has waited returns: `error`, or `passing_error`, which is forgotten then; or that a reset has
    /// dropped what it waited for.
    CUresult take_error() noexcept;
    /// What was set, or else the default.
    std::size_t limit(CUlimit which, std::size_t otherwise) {
        const std::lock_guard lock(mutex);
        const auto set = limits.find(which);
        return set == limits.end() ? otherwise : set->second;
    }
    /// Whether what a call has enqueued then is still to be done.
    bool executes(std::uint64_t resets_before) const noexcept;
};

/// The one state of the process. Never destroyed: calls may come until the very end. A forked child has none:
/// threads and locks do not survive a fork, and a GPU's context does not either.
class Process {
  public:
    static Process& get();

    bool initialised() const noexcept { return initialised_.load(std::memory_order_acquire); }
    /// cuInit: refused where a variable of the environment has an unknown value, and in a forked process.
    CUresult initialise();
    int devices() const noexcept { return environment_.devices; }
    bool is_device(int device) const noexcept { return device >= 0 && device < devices(); }
    /// Another process has it for itself (CU_COMPUTEMODE_EXCLUSIVE_PROCESS).
    bool is_busy(int device) const noexcept { return (environment_.busy >> device & 1) != 0; }
    /// A kernel was enqueued: managed memory is the device's alone until `host_has_waited` finds nothing pending.
    void kernel_enqueued() {
        if (managed_guard_ != nullptr) managed_guard_->close();
    }
    void host_has_waited();
    const Environment& environment() const noexcept { return environment_; }
    /// On stderr, when a context or the process ends: what its kernels allocated and have not freed.
    std::atomic<bool> reports_leaks{false};
    memory::Heap& heap() noexcept { return *heap_; }
    streams::Scheduler& scheduler() noexcept { return scheduler_; }
    Handles& handles() noexcept { return handles_; }
    memory::ImageObjects& images() noexcept { return images_; }

    Context& primary(int device) { return *contexts_[static_cast<std::size_t>(device)]; }
    Context& create_context(int device);
    /// Runs what is pending, then frees everything that belongs to the context.
    void destroy_context(Context& context);
    std::vector<Context*> contexts();
    /// Drops what is pending in the contexts of a device, and loses its memory (bascule_emulated_reset).
    void reset(int device);
    /// Counts resets: graphs that were captured before the last one have lost what they work on.
    static std::uint64_t resets() noexcept;

    /// What is pending in any context is never done, what runs ends soon, and those contexts have an error from now on.
    void drop_pending();
    /// The process is about to end: what is pending has `left` to finish, and is dropped then. Zero: it stays pending.
    void end_soon(std::chrono::milliseconds left);

    /// Remembers which context an allocation belongs to, until `free` or the end of the context.
    void own(memory::DeviceAddress address, memory::Allocation::Kind kind, Context& context,
             PoolShare share = {});
    /// Its address is a graph's, which stays its owner while it is allocated and freed. It counts as freed now.
    void keep(memory::DeviceAddress address);
    void end_keeping(memory::DeviceAddress address);
    /// The launch of a graph allocates it. False when it is allocated already.
    bool begin_use(memory::DeviceAddress address);
    Context* owner(memory::DeviceAddress address);
    /// A stream-ordered free was issued. False when one was before.
    bool begin_free(memory::DeviceAddress address);
    bool is_being_freed(memory::DeviceAddress address);
    /// Ends an allocation and its ownership at once: nobody finds one of them without the other, and host memory's address
    /// may be another's as soon as it is free. False where there is none of this kind.
    bool free(memory::DeviceAddress address, memory::Allocation::Kind kind,
              memory::Heap::FreedBy by = memory::Heap::FreedBy::host);
    /// What has this byte, live or allocated in stream order, and was not freed so. Null where nothing does.
    const memory::Allocation* find_usable(memory::DeviceAddress address);
    /// The pool that an allocation is from; null when it is from none.
    PoolShare pool_of(memory::DeviceAddress address);

    /// Counts streams and contexts; never reused.
    std::uint64_t next_id() noexcept { return next_id_.fetch_add(1); }

    void set_report(std::string text);
    std::string report();
    void set_fault(std::string text, const FaultedLaunch& launch);
    /// As JSON: emulated_abi.h says which.
    std::string fault();

  private:
    Process();

    void report_leaks(const Context& context) const noexcept;
    static void forget_all_in_child() noexcept;
    static void end() noexcept;

    std::atomic<bool> initialised_{false};
    std::atomic<bool> forked_{false};
    std::atomic<std::uint64_t> next_id_{16};  // above the special stream handles
    const Environment environment_;
    streams::Scheduler scheduler_;
    std::unique_ptr<memory::ManagedGuard> managed_guard_;  // null where the host may use it while kernels run
    std::unique_ptr<memory::Heap> heap_;
    std::unique_ptr<memory::HostPages> host_pages_;  // null unless kernels reach any host memory
    Handles handles_;
    memory::ImageObjects images_;                     // textures and surfaces
    std::mutex mutex_;                                // of what follows
    std::vector<std::unique_ptr<Context>> contexts_;  // primary ones first
    struct Owned {
        Context* context;
        memory::Allocation::Kind kind;
        PoolShare share;
        bool being_freed = false;
        bool kept = false;
    };
    std::unordered_map<memory::DeviceAddress, Owned> owners_;  // by the allocation's base
    std::string report_;
    std::string fault_report_;
    FaultedLaunch faulted_;
};

/// A thread's contexts; the last is current, and may be null. Nothing of it is destroyed when the thread
/// ends: destructors that run later still may ask.
class ContextStack {
  public:
    bool empty() const noexcept { return depth_ == 0; }
    Context* current() const noexcept { return depth_ == 0 ? nullptr : contexts_[depth_ - 1]; }
    /// False when it is full.
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

/// Null for what is not a context. Destroyed ones are found too, with `alive` false.
Context* find_context(CUcontext handle);

/// CUDA_SUCCESS, or why a context cannot be used, whatever has failed in it.
inline CUresult state_of(const Context* context) noexcept {
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    return context->alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/// The same for what a fault ends.
inline CUresult usable(const Context* context) noexcept {
    const CUresult state = state_of(context);
    return state == CUDA_SUCCESS ? context->error.load(std::memory_order_acquire) : state;
}

/// CUDA_SUCCESS, or why the calling thread may not ask for anything that needs a context.
inline CUresult may_use_contexts() noexcept {
    if (!Process::get().initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    return streams::Scheduler::inside() ? CUDA_ERROR_NOT_PERMITTED
                                        : CUDA_SUCCESS;  // a host function calls the driver
}

/// The calling thread's.
ContextStack& context_stack() noexcept;
Context* current_context() noexcept;

/// Tells the calling thread from every other one there ever was.
std::uint64_t thread_number();

inline bool is_default(CUstream handle) noexcept {
    return handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
}

/// A stream handle's meaning in the calling thread: NULL and 1 are the current context's legacy stream, 2 the
/// thread's own.
struct StreamTarget {
    CUresult state = CUDA_SUCCESS;  ///< or why there is none; then nothing else is set
    Context* context = nullptr;
    std::shared_ptr<Stream> owner;  ///< keeps the stream while it is used; null for the legacy one
    streams::Stream* stream = nullptr;

    explicit StreamTarget(CUstream handle);
    const Stream& properties() const noexcept { return owner == nullptr ? context->legacy : *owner; }

  private:
    CUresult find(CUstream handle);
};

/// A StreamTarget's state, for a question that does nothing with the stream. It takes no lock for a stream
/// that the thread has asked about lately, as a driver takes none.
CUresult stream_state(CUstream handle);

/// Of the architecture that the devices have.
inline const limits::Architecture& architecture_limits() noexcept {
    return limits::architecture(Process::get().environment().architecture);
}

}  // namespace emulated::driver
