#include "driver/process.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <utility>

#include "driver/exported.hpp"
#include "driver/interruption.hpp"
#include "report/json.hpp"
#include "report/report.hpp"

namespace emulated::driver {
namespace {

/// The time that a kernel may still run when the process ends.
constexpr std::chrono::milliseconds last_moment{1000};

/// Destroys a thread's own streams when the thread ends. What is pending on them still runs.
struct ThreadStreams {
    std::uint64_t number;
    ~ThreadStreams() {
        if (!Process::get().initialised()) return;
        for (Context* context : Process::get().contexts()) {
            const std::lock_guard lock(context->mutex);
            const auto found = context->per_thread.find(number);
            if (found == context->per_thread.end()) continue;
            context->graph.remove(found->second->stream);
            context->per_thread.erase(found);
        }
    }
};

/// Makes calls of other threads wait while a device is reset.
class Resetting {
  public:
    Resetting() noexcept {
        detail::resets_here = true;
        detail::resetting.store(true);
    }
    ~Resetting() {
        detail::resetting.store(false);
        detail::resetting.notify_all();
        detail::resets_here = false;
    }
    Resetting(Resetting&&) = delete;
};

/// A driver would dereference the handle; on an H100 such a call was a segmentation fault.
CUresult refuse_stale_stream(CUstream handle) {
    if (Process::get().environment().crashes_on_stale_streams) {
        std::fprintf(stderr, "bascule emulated device: %p is not a stream, or was destroyed.\n",
                     static_cast<const void*>(handle));
        std::abort();
    }
    return CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

std::uint64_t thread_number() {
    static std::atomic<std::uint64_t> next{1};
    thread_local constinit std::uint64_t number = 0;
    if (number == 0) {
        number = next.fetch_add(1);
        thread_local const ThreadStreams streams{number};
    }
    return number;
}

Process& Process::get() {
    static Process& process = *new Process;
    return process;
}

Process::Process()
    : environment_(read_environment()),
      scheduler_(environment_.schedule,
                 [] {
                     if (interrupted()) get().drop_pending();
                 }),
      managed_guard_(environment_.concurrent_managed ? nullptr : std::make_unique<memory::ManagedGuard>()),
      heap_(std::make_unique<memory::Heap>(devices(), environment_.memory_bytes, managed_guard_.get())),
      host_pages_(environment_.pageable ? std::make_unique<memory::HostPages>() : nullptr) {
    checks = environment_.executes ? environment_.checks : environment_.checks & ~checks::observing;
    heap_->shadow().turn(checks::has(checks, checks::Check::init));
    if (environment_.tells_reports) report::write_unread_reports();
    for (int device = 0; device < devices(); ++device) {
        contexts_.push_back(
            std::make_unique<Context>(device, true, next_id(), scheduler_, *heap_, host_pages_.get()));
    }
    races::Detector::get().describe_with(
        [](std::uint64_t address, std::uint64_t bytes) { return get().heap().describe(address, bytes); });
    checks::describe_with(
        [](std::uint64_t address, std::uint64_t bytes) { return get().heap().describe(address, bytes); },
        [](std::uint64_t address) -> std::uint64_t {
            const memory::Allocation* inside = get().heap().find(address);
            return inside == nullptr ? 0 : inside->base;
        });
    if (checks::has(environment_.checks, checks::Check::races) && environment_.executes)
        races::Detector::get().switch_to(true);
    if (scheduler_.policy() == streams::Policy::threads) streams::DriverLock::enable();
    pthread_atfork(nullptr, nullptr, forget_all_in_child);
    std::atexit(end);
}

CUresult Process::initialise() {
    if (forked_) return CUDA_ERROR_NOT_INITIALIZED;
    if (const std::string& complaint = environment_.complaint; !complaint.empty()) {
        set_report(complaint);
        static std::atomic<bool> said{false};
        if (!said.exchange(true)) std::fprintf(stderr, "bascule: %s\n", complaint.c_str());
        return CUDA_ERROR_INVALID_VALUE;
    }
    initialised_.store(true, std::memory_order_release);
    return CUDA_SUCCESS;
}

/// Threads that the child does not have may hold locks. Therefore only flags are changed, here and later.
void Process::forget_all_in_child() noexcept {
    Process& process = get();
    if (process.initialised_.exchange(false)) process.forked_ = true;
    streams::DriverLock::forget();
    detail::resetting.store(false);
}

/// Destructors of static objects that run later may still call the driver. The operations for which they wait have
/// completed or run in those calls.
void Process::end() noexcept {
    Process& process = get();
    streams::DriverLock::disable();
    if (process.forked_) return;
    process.scheduler_.retire(last_moment);
    for (const Context* context : process.contexts()) process.report_leaks(*context);
    for (const std::string& race : races::Detector::get().take_reports()) report::tell(race);
    for (const std::string& text : checks::take_reports()) report::tell(text);
}

void Process::report_leaks(const Context& context) const noexcept {
    if (!checks::has(checks, checks::Check::leaks)) return;
    const std::string text = heap::describe_leaks(context.kernel_heap.live());
    if (!text.empty()) std::fprintf(stderr, "bascule: %s\n", text.c_str());
}

void Process::end_soon(std::chrono::milliseconds left) {
    using Clock = std::chrono::steady_clock;
    begin_ending();
    streams::DriverLock::disable();
    if (left == left.zero()) return;
    interrupt_at(Clock::now() + left);
    for (Context* context : contexts()) context->graph.synchronize_all();
    interrupt_at(Clock::time_point::max());
}

void Process::drop_pending() {
    for (Context* context : contexts()) {
        if (!context->graph.busy()) continue;
        context->interrupted = true;
        context->fail(
            CUDA_ERROR_LAUNCH_TIMEOUT,
            "interrupted: the program stopped waiting, and everything that was pending was dropped");
    }
}

Context& Process::create_context(int device) {
    auto context = std::make_unique<Context>(device, false, next_id(), scheduler_, *heap_, host_pages_.get());
    context->alive = true;
    const std::lock_guard lock(mutex_);
    return *contexts_.emplace_back(std::move(context));
}

std::vector<Context*> Process::contexts() {
    const std::lock_guard lock(mutex_);
    std::vector<Context*> all;
    for (const auto& context : contexts_) all.push_back(context.get());
    return all;
}

void Process::destroy_context(Context& context) {
    context.graph.synchronize_all();
    const auto of_it = [&](const auto& object) { return object.context == &context; };
    for (const auto& stream : handles_.all<Stream>(of_it)) {
        context.graph.remove(stream->stream);
        handles_.remove<Stream>(stream.get());
    }
    for (const auto& event : handles_.all<Event>(of_it)) handles_.remove<Event>(event.get());
    for (const auto& function : handles_.all<KernelHandle>(of_it))
        handles_.remove<KernelHandle>(function.get());
    for (const auto& module : handles_.all<Library>(of_it)) handles_.remove<Library>(module.get());
    for (const auto& library : handles_.all<Library>([](const Library&) { return true; })) {
        const std::lock_guard lock(library->mutex);
        library->instances.erase(&context);
        std::erase_if(library->kernels, [&](const auto& entry) { return entry.first.second == &context; });
    }
    scheduler_.exclusively([&] {
        const std::lock_guard lock(mutex_);
        std::erase_if(owners_, [&](const auto& entry) {
            if (entry.second.context != &context) return false;
            if (entry.second.kept && !heap_->end_keeping(entry.first)) return true;
            heap_->free(entry.first, entry.second.kind);
            return true;
        });
    });
    {
        const std::lock_guard lock(context.mutex);
        for (const auto& [thread, stream] : context.per_thread) context.graph.remove(stream->stream);
        context.per_thread.clear();
        context.limits.clear();
        context.workspaces.clear();
    }
    context.memory.remove_peers();
    report_leaks(context);
    context.kernel_heap.drop("which went with its context");
    context.error = CUDA_SUCCESS;
    context.passing_error = CUDA_SUCCESS;
    context.interrupted = false;
}

std::uint64_t Process::resets() noexcept { return detail::resets.load(std::memory_order_relaxed); }

void Process::reset(int device) {
    const Resetting resetting;
    std::vector<Context*> affected = contexts();
    std::erase_if(affected, [&](const Context* context) { return context->device != device; });
    for (Context* context : affected) context->error = CUDA_ERROR_CONTEXT_IS_DESTROYED;  // ends kernels
    set_report("the device was reset during this call");
    // Counted after the error is set: a call that sees the new count also sees the error or starts after the reset.
    detail::resets.fetch_add(1);
    for (Context* context : affected) context->graph.drain();
    scheduler_.exclusively([&] {
        const std::lock_guard lock(mutex_);
        for (const auto& [address, owned] : owners_) {
            if (owned.context->device == device && owned.kind == memory::Allocation::Kind::device)
                heap_->lose(address);
        }
    });
    for (Context* context : affected) {
        context->kernel_heap.drop("which was lost when the device was reset");
        context->error = CUDA_SUCCESS;
        context->passing_error = CUDA_SUCCESS;
        context->interrupted = false;
    }
}

void Process::own(memory::DeviceAddress address, memory::Allocation::Kind kind, Context& context,
                  PoolShare share) {
    if (const memory::Allocation* made = heap_->find_known(address))
        races::Detector::get().forget(address, made->bytes);
    const std::lock_guard lock(mutex_);
    owners_[address] = {&context, kind, std::move(share)};
}

bool Process::free(memory::DeviceAddress address, memory::Allocation::Kind kind, memory::Heap::FreedBy by) {
    const std::lock_guard lock(mutex_);
    const auto found = owners_.find(address);
    if (found != owners_.end() && !found->second.kept) owners_.erase(found);
    return heap_->free(address, kind, by);
}

const memory::Allocation* Process::find_usable(memory::DeviceAddress address) {
    const std::lock_guard lock(mutex_);
    const memory::Allocation* known = heap_->find_known(address);
    if (known == nullptr || known->kept) return known;  // the address belongs to a graph even after a free
    const auto found = owners_.find(known->base);
    return found != owners_.end() && found->second.being_freed ? nullptr : known;
}

void Process::keep(memory::DeviceAddress address) {
    heap_->keep(address);
    const std::lock_guard lock(mutex_);
    Owned& owned = owners_.at(address);
    owned.kept = owned.being_freed = true;
}

void Process::end_keeping(memory::DeviceAddress address) {
    const std::lock_guard lock(mutex_);
    const auto found = owners_.find(address);
    if (found != owners_.end()) found->second.kept = false;
    if (!heap_->end_keeping(address) && found != owners_.end()) owners_.erase(found);
}

/// Returns `use(owned)` for the allocation that starts at this address, with the lock held; a default value if there is
/// none.
template <class Use>
auto Process::with_owned(memory::DeviceAddress address, const Use& use) {
    const std::lock_guard lock(mutex_);
    const auto found = owners_.find(address);
    return found == owners_.end() ? decltype(use(found->second)){} : use(found->second);
}

bool Process::begin_use(memory::DeviceAddress address) {
    return with_owned(address, [](Owned& owned) { return std::exchange(owned.being_freed, false); });
}
bool Process::begin_free(memory::DeviceAddress address) {
    return with_owned(address, [](Owned& owned) { return !std::exchange(owned.being_freed, true); });
}
bool Process::is_being_freed(memory::DeviceAddress address) {
    return with_owned(address, [](const Owned& owned) { return owned.being_freed; });
}
PoolShare Process::pool_of(memory::DeviceAddress address) {
    return with_owned(address, [](const Owned& owned) { return owned.share; });
}
Context* Process::owner(memory::DeviceAddress address) {
    return with_owned(address, [](const Owned& owned) { return owned.context; });
}

void Context::fail(CUresult code, std::string report, const FaultedLaunch& launch) {
    CUresult none = CUDA_SUCCESS;
    if (error.compare_exchange_strong(none, code)) Process::get().set_fault(std::move(report), launch);
}

void Process::host_has_waited() {
    if (managed_guard_ == nullptr || !managed_guard_->closed()) return;
    const std::vector<Context*> all = contexts();
    if (std::ranges::none_of(all, [](Context* context) { return context->graph.busy(); }))
        managed_guard_->open();
}

CUresult Context::take_error() noexcept {
    Process::get().host_has_waited();
    const CUresult lasting = error.load(std::memory_order_acquire);
    if (Process::resets() != resets_before_call()) {
        Process::get().set_report("the device was reset while this call waited");
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    return lasting != CUDA_SUCCESS ? lasting : passing_error.exchange(CUDA_SUCCESS);
}

bool Context::executes(std::uint64_t resets_before) const noexcept {
    return error.load(std::memory_order_acquire) == CUDA_SUCCESS && Process::resets() == resets_before;
}

CUresult out_of_memory(const std::string& report) noexcept {
    Process::get().set_report(report);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

void Process::set_report(std::string text) {
    const std::lock_guard lock(mutex_);
    report_ = std::move(text);
}

std::string Process::report() {
    if (forked_) {
        return "this process was forked from one that uses the emulated device, and has none, as it would "
               "have no GPU: start such processes anew (multiprocessing's 'spawn')";
    }
    const std::lock_guard lock(mutex_);
    return report_;
}

void Process::set_fault(std::string text, const FaultedLaunch& launch) {
    report::tell(text);
    const std::lock_guard lock(mutex_);
    report_ = text;
    fault_report_ = std::move(text);
    faulted_ = launch;
}

std::string Process::fault() {
    using Lack = machine::Fault::Lack;
    nlohmann::json record = nlohmann::json::object();
    if (!forked_) {
        const std::lock_guard lock(mutex_);
        if (!fault_report_.empty()) record["report"] = fault_report_;
        if (!faulted_.kernel.empty()) {
            record["kernel"] = faulted_.kernel;
            record["lacks"] = faulted_.lack == Lack::dynamic_shared_bytes ? "shared bytes"
                              : faulted_.lack == Lack::cooperation        ? "cooperation"
                                                                          : "";
            record["stream"] = faulted_.stream;
            record["site"] = faulted_.site;
        }
    }
    return emulated::report::to_text(record);
}

ContextStack& context_stack() noexcept {
    thread_local constinit ContextStack stack;
    return stack;
}

Context* find_context(CUcontext handle) {
    const auto all = Process::get().contexts();
    const auto found = std::ranges::find(all, reinterpret_cast<Context*>(handle));
    return found == all.end() ? nullptr : *found;
}

Context* current_context() noexcept { return context_stack().current(); }

StreamTarget::StreamTarget(CUstream handle) { state = find(handle); }

CUresult StreamTarget::find(CUstream handle) {
    if (const CUresult allowed = may_use_contexts(); allowed != CUDA_SUCCESS) return allowed;
    if (handle == nullptr && detail::null_is_per_thread) handle = CU_STREAM_PER_THREAD;
    if (is_default(handle)) {
        context = current_context();
        if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (handle == CU_STREAM_PER_THREAD) {
        const std::lock_guard lock(context->mutex);
        std::shared_ptr<Stream>& mine = context->per_thread[thread_number()];
        if (mine == nullptr) {
            mine = std::make_shared<Stream>();
            mine->context = context;
            mine->id = 2;
            context->graph.add(mine->stream);
        }
        owner = mine;
    } else if (context == nullptr) {
        owner = Process::get().handles().find<Stream>(handle);
        if (owner == nullptr) return refuse_stale_stream(handle);
        context = owner->context;
    }
    stream = owner == nullptr ? &context->graph.legacy() : &owner->stream;
    return usable(context);
}

CUresult stream_state(CUstream handle) {
    struct Known {
        CUstream handle = nullptr;  // the default stream has no handle
        const Context* context = nullptr;
        std::uint64_t removals = 0;
    };
    thread_local constinit std::array<Known, 8> asked_lately{};
    const auto address = reinterpret_cast<std::uintptr_t>(handle);
    Known& known = asked_lately[(address >> 4 ^ address >> 8) % asked_lately.size()];
    Handles& handles = Process::get().handles();
    const std::uint64_t removals = handles.removals();
    if (handle == nullptr || known.handle != handle || known.removals != removals) {
        const StreamTarget target(handle);
        if (target.owner != nullptr && handle != CU_STREAM_PER_THREAD)
            known = {handle, target.context, removals};
        return target.state;
    }
    const CUresult allowed = may_use_contexts();
    return allowed == CUDA_SUCCESS ? usable(known.context) : allowed;
}

}  // namespace emulated::driver

EMULATED_EXPORT void bascule_emulated_end(std::uint32_t milliseconds) {
    emulated::driver::Process& process = emulated::driver::Process::get();
    if (process.initialised()) process.end_soon(std::chrono::milliseconds(milliseconds));
}
