// What the driver knows of this process: devices, contexts, handles, memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <cuda.h>

#include "memory/heap.hpp"
#include "program/module.hpp"
#include "streams/graph.hpp"

namespace emulated::driver {

struct Context;

/// What a CUstream points to.
struct Stream {
    streams::Stream stream;
    Context* context = nullptr;
};

/// What a CUevent points to.
struct Event {
    streams::Event event;
    Context* context = nullptr;
};

struct Library;

/// What a CUkernel, and a CUfunction, points to. Owned by its Library.
struct KernelHandle {
    const program::Kernel* kernel = nullptr;
    Library* library = nullptr;
    Context* context = nullptr;  ///< of a CUfunction; null for a CUkernel, which runs in the current context
    std::atomic<int> max_dynamic_shared_bytes{-1};  ///< -1: what 48 KB leave beside static memory
};

/// What a CUlibrary, and a CUmodule, points to.
struct Library {
    std::shared_ptr<const program::Module> module;
    Context* context = nullptr;  ///< of a CUmodule; null for a CUlibrary, which serves every context
    std::mutex mutex;
    std::map<Context*, std::vector<memory::DeviceAddress>> globals;  ///< made at first use in a context
    std::map<std::pair<const program::Kernel*, Context*>, std::unique_ptr<KernelHandle>> kernels;
};

/// What a CUcontext points to. `error` is sticky: the first fault stays until the context goes.
struct Context {
    Context(int device_ordinal, bool is_primary, streams::Policy policy)
        : device(device_ordinal), primary(is_primary), graph(policy) {}

    int device;
    bool primary;
    unsigned flags = 0;
    std::atomic<int> references{0};
    std::atomic<CUresult> error{CUDA_SUCCESS};
    streams::Graph graph;
    std::mutex mutex;  // of what follows
    std::unordered_map<std::thread::id, std::unique_ptr<Stream>> per_thread;
    std::unordered_map<Stream*, std::unique_ptr<Stream>> streams;
    std::unordered_map<Event*, std::unique_ptr<Event>> events;
};

/// The one state of the process. Made by cuInit, never destroyed: calls may come until the very end.
class Process {
  public:
    static Process& get();

    bool initialised() const noexcept { return initialised_.load(std::memory_order_acquire); }
    void initialise() noexcept { initialised_.store(true, std::memory_order_release); }
    int devices() const noexcept { return devices_; }
    bool executes() const noexcept { return executes_; }
    unsigned workers() const noexcept { return workers_; }
    memory::Heap& heap() noexcept { return *heap_; }

    Context& primary(int device) { return *primaries_[static_cast<std::size_t>(device)]; }
    Context* create_context(int device);
    bool destroy_context(Context* context);
    bool knows(Context* context);
    std::vector<Context*> contexts();

    Library* add_library(std::unique_ptr<Library> library);
    bool remove_library(Library* library);
    bool knows(Library* library);

    void set_report(std::string text);
    std::string report();

  private:
    Process();

    std::atomic<bool> initialised_{false};
    int devices_ = 1;
    bool executes_ = true;
    unsigned workers_ = 1;
    streams::Policy policy_ = streams::Policy::eager;
    std::unique_ptr<memory::Heap> heap_;
    std::vector<std::unique_ptr<Context>> primaries_;
    std::mutex mutex_;
    std::unordered_map<Context*, std::unique_ptr<Context>> created_;
    std::unordered_map<Library*, std::unique_ptr<Library>> libraries_;
    std::string report_;
};

/// The calling thread's stack of contexts; the last is current, and may be null.
std::vector<Context*>& context_stack() noexcept;
Context* current_context() noexcept;

/// The stream that a handle means in the current context: NULL and 1 the legacy one, 2 the thread's. Null for
/// a handle that is none.
streams::Stream* find_stream(Context& context, CUstream handle);
Event* find_event(CUevent handle);

/// The context that a stream handle belongs to; the current one for default streams.
Context* context_of(CUstream handle);

}  // namespace emulated::driver
