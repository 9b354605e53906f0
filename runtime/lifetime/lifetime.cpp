// Decides when a stream gets a marker, when owners are released, and which marker the host waits for if too much is held.
//
// No lock is held while an owner is released or the host waits: a release may take the GIL, run any code, and launch
// again. A forked child takes no lock, because a thread that does not exist there may hold it, and releases nothing,
// because its parent's kernels still run.
#include <chrono>
#include <optional>
#include <thread>

#include <bascule/runtime/lifetime/bookkeeping.hpp>
#include <bascule/runtime/lifetime/captured_owners.hpp>
#include <bascule/runtime/lifetime/lifetime.hpp>
#include <bascule/runtime/lifetime/owner_queue.hpp>
#include <bascule/runtime/streams/event.hpp>
#include <bascule/runtime/streams/observer.hpp>
#include <bascule/runtime/streams/stream.hpp>
#include <bascule/runtime/streams/stream_capture.hpp>

namespace bascule {
namespace {

/// Records a marker that covers the queue's contents. The context must be current and Bookkeeping active. Throws: CudaError.
void mark(OwnerQueue& queue, StreamRef stream, const Driver& driver) {
    CUevent event = EventPool::of(stream.device()).take();
    Marker marker;
    {
        const std::lock_guard lock(queue.mutex);
        marker = queue.begin_marker(event);
    }
    try {
        driver.check(driver.api().cuEventRecord(event, stream.native()), "recording a marker event");
        queue.add(marker);
    } catch (...) {  // the next marker will cover the same operations
        queue.drop(marker);
        throw;
    }
}

constexpr const char* room_in_a_queue = "room in the queue of a stream";

/// Whether the work before a marker is done, according to the driver's result. Also true if the context is lost or
/// destroyed, because its work no longer runs. Other errors say nothing about the work.
bool is_over(CUresult code) noexcept {
    return code == CUDA_SUCCESS || code == CUDA_ERROR_DEINITIALIZED ||
           code == CUDA_ERROR_CONTEXT_IS_DESTROYED || loses_context(code);
}

/// Removes completed markers and returns the newest mark that they cover, or 0.
KeptMark pass_markers(OwnerQueue& queue, const Driver& driver) noexcept {
    const Bookkeeping bookkeeping(driver);
    KeptMark passed = 0;
    for (;;) {
        Marker oldest;
        {
            const std::lock_guard lock(queue.mutex);
            if (queue.markers.empty()) return passed;
            oldest = queue.take_oldest_marker();
        }
        if (!is_over(driver.api().cuEventQuery(oldest.event))) {
            queue.put_back(oldest);
            return passed;
        }
        queue.drop(oldest);
        passed = std::max(passed, oldest.covers);  // two threads may have added markers in either order
    }
}

/// Releases finished owners of streams that have been destroyed.
void collect_retired(Device device, const Driver& driver) noexcept {
    for (std::size_t i = 0; OwnerQueue* queue = queue_at(i); ++i) {
        {
            const std::lock_guard lock(queue->mutex);
            if (!queue->retired || queue->key.stream.device() != device || queue->markers.empty()) continue;
        }
        queue->release_until(pass_markers(*queue, driver));
    }
}

/// Waits for the oldest marker, removes it and releases the owners that it covers. Returns false, and releases nothing,
/// if there is none or if the wait failed in a way that says nothing about the work. Throws: WaitInterrupted, and keeps
/// the marker.
bool wait_for_oldest_marker(OwnerQueue& queue, const Driver& driver) {
    Marker oldest;
    {
        const std::lock_guard lock(queue.mutex);
        if (queue.markers.empty()) return false;
        oldest = queue.take_oldest_marker();
    }
    bool waited = false;
    try {
        waited = is_over(wait_as_bookkeeping(
            driver, room_in_a_queue, [&] { return driver.api().cuEventQuery(oldest.event); },
            [&] { return driver.api().cuEventSynchronize(oldest.event); }));
    } catch (const WaitInterrupted&) {
        queue.put_back(oldest);
        throw;
    }
    queue.drop(oldest);
    if (waited) queue.release_until(oldest.covers);  // otherwise the next marker covers these operations
    return waited;
}

/// Adds a marker and releases finished owners. `not_captured`: the driver has just reported that the stream is not
/// capturing. Throws: CudaError.
void collect(OwnerQueue& queue, StreamRef stream, bool not_captured) {
    const Driver& driver = Driver::get();
    const ContextGuard context(stream.context());
    bool capturing = false;
    {
        const Bookkeeping bookkeeping(driver);
        capturing = !not_captured && is_capturing(stream);
        if (!capturing) mark(queue, stream, driver);
    }
    if (!capturing) {  // in a capture, a marker would become part of the graph
        queue.release_until(pass_markers(queue, driver));
    }
    collect_retired(stream.device(), driver);
}

/// Waits for the oldest marker if the queue is full. A driver would wait inside the next call, where no signal can end the
/// wait. Throws: CudaError, WaitInterrupted.
void wait_for_room(OwnerQueue& queue, StreamRef stream) {
    {
        const std::lock_guard lock(queue.mutex);
        if (!queue.is_full()) return;  // markers have passed meanwhile
    }
    const ContextGuard context(stream.context());
    wait_for_oldest_marker(queue, Driver::get());
}

/// The last resort, for owners that are in no queue.
void wait_and_release(StreamRef stream, const Owners& owners) noexcept {
    try {
        const ContextGuard context(stream.context());
        Driver::get().api().cuStreamSynchronize(stream.native());
    } catch (...) {  // the context is gone, so its work no longer runs
    }
    release(owners);
}

bool taken_by_foreign_graph(StreamRef stream, const Owners& owners, const CodeRef* code, StreamFacts facts) {
    std::optional<ContextGuard> context;
    if (facts == StreamFacts::none) context.emplace(stream.context());
    return retain_for_foreign_graph(stream, owners, code);
}

/// Returns the stream's queue, or null if a foreign graph has taken the owners. Other libraries do not announce captures, and
/// may capture a stream that Bascule used before. So this queries the driver each time, unless the stream is hidden.
LockedQueue queue_for(StreamRef stream, const Owners& owners, const CodeRef* code, StreamFacts facts) {
    const QueueKey key = QueueKey::of(stream);
    LockedQueue found = find_or_make_queue(key);
    if (!found.queue->asks || facts == StreamFacts::not_captured) return found;
    found.lock.unlock();
    if (taken_by_foreign_graph(stream, owners, code, facts)) return {};
    return find_or_make_queue(key);
}

/// Called when a stream's handle is given to other code, which may capture the stream from now on.
void note_given_out(StreamRef stream) noexcept {
    try {
        const LockedQueue found = find_queue(QueueKey::of(stream));
        if (found.queue == nullptr) return;
        found.queue->asks = true;
        found.queue->count();
    } catch (...) {  // a lock failed
    }
}

/// Retires the queue of a stream that is about to be destroyed. Its owners are kept until the work is done. Throws if
/// no marker can be recorded: the owners then stay until the device is synchronized. The context must be current.
void retire_queue_of(StreamRef stream, const Driver& driver) {
    OwnerQueue* queue = nullptr;
    {
        const LockedQueue found = find_queue(QueueKey::of(stream));
        if (found.queue == nullptr) return;
        queue = found.queue;
        queue->retired = true;
        queue->count();
        if (queue->kept.empty()) return;
    }
    const Bookkeeping bookkeeping(driver);
    if (!is_capturing(stream)) mark(*queue, stream, driver);
}

void retire(StreamRef stream) noexcept {
    if (Driver::lost_by_fork()) return;
    try {
        const Driver& driver = Driver::get();
        const ContextGuard context(stream.context());
        retire_queue_of(stream, driver);
        collect_retired(stream.device(), driver);
    } catch (...) {  // the marker was not recorded
    }
}

/// The default streams of the calling thread (handle 2) that Bascule has used. The driver destroys them when the thread
/// ends, after this destructor runs. The destructor therefore waits, for at most two seconds, until they are idle.
/// Otherwise kept owners would wait for events of a destroyed stream, and a device synchronization in another thread
/// can deadlock in the driver (seen with driver 580 on an H100).
class DefaultStreams {
  public:
    void add(Device device) noexcept { ordinals_ |= std::uint64_t{1} << device.ordinal(); }
    ~DefaultStreams() {
        if (ordinals_ == 0 || Driver::lost_by_fork()) return;
        for (int ordinal = 0; ordinal < max_devices; ++ordinal) {
            if ((ordinals_ >> ordinal & 1) != 0) end(ordinal);
        }
    }

  private:
    static void end(int ordinal) noexcept {
        using namespace std::chrono_literals;
        const auto until = std::chrono::steady_clock::now() + 2s;
        try {
            const Driver& driver = *Driver::existing();
            const StreamRef own(2, Device(ordinal));
            const ContextGuard context(own.context());
            retire_queue_of(own, driver);  // other threads release the owners: this one cannot run Python
            const Bookkeeping bookkeeping(driver);
            while (driver.api().cuStreamQuery(own.native()) == CUDA_ERROR_NOT_READY &&
                   std::chrono::steady_clock::now() < until) {
                std::this_thread::sleep_for(50us);
            }
        } catch (...) {  // the context is gone, so its work no longer runs
        }
    }

    std::uint64_t ordinals_ = 0;
};
static_assert(max_devices <= 64);

constinit thread_local DefaultStreams default_streams;

constexpr StreamObserver observer{
    .stream_finished = [](StreamRef stream, KeptMark mark, bool) noexcept { release_finished(stream, mark); },
    .device_finished = [](Device device, KeptMark mark, bool) noexcept { release_finished(device, mark); },
    .handle_given_out = &note_given_out,
    .stream_ends = &retire,
};

/// The path of operations that keep_in_last_queue refuses. Takes `owners`. Returns false if a signal ended a wait.
[[gnu::noinline]] bool keep_in_any_queue(StreamRef stream, const Owners& owners, const CodeRef* code,
                                         StreamFacts facts) noexcept {
    set_stream_observer(ObservingPart::lifetime, observer);
    LockedQueue found;
    try {
        found = queue_for(stream, owners, code, facts);
        if (found.queue == nullptr) return true;
        found.queue->reserve(owners.count);
    } catch (...) {  // out of memory
        if (found.lock.owns_lock()) found.lock.unlock();
        wait_and_release(stream, owners);
        return true;
    }
    OwnerQueue& queue = *found.queue;
    if (stream.handle() == 2) default_streams.add(stream.device());
    const KeptMark now = next_mark();
    queue.keep(owners, now);
    queue.count();
    const bool due =
        queue.may_end || queue.unmarked >= operations_a_marker || queue.unmarked_bytes >= bytes_a_marker;
    if (due && facts == StreamFacts::not_captured) queue.several_places = true;  // it has waits around it
    const bool was_asked = queue.may_end && facts != StreamFacts::not_captured;  // in queue_for
    const bool was_full = queue.is_full();
    found.lock.unlock();
    if (!due && !was_full) return true;
    try {
        if (due) collect(queue, stream, was_asked);
        if (was_full) wait_for_room(queue, stream);
    } catch (const WaitInterrupted&) {
        return false;
    } catch (...) {  // no marker could be recorded
        wait_and_release(stream, {});
        queue.release_until(now);
    }
    return true;
}

}  // namespace

bool keep_until_done(StreamRef stream, const Owners& owners, ThreadMemory& memory, const CodeRef* code,
                     StreamFacts facts) noexcept {
    if ((owners.empty() && code == nullptr) || Driver::lost_by_fork()) return true;
    release_owners_of_ended_graphs();
    if (NotedCapture::any() && keep_for_graph(stream, owners, code)) return true;
    if (keep_in_last_queue(memory, stream, owners)) [[likely]]
        return true;
    return keep_in_any_queue(stream, owners, code, facts);
}

void OwnersKept::fail_interrupted() { throw_wait_interrupted(room_in_a_queue); }

void keep_until_all_done(const std::shared_ptr<const void>& code) {
    using Share = std::shared_ptr<const void>;
    for (std::size_t i = 0; OwnerQueue* queue = queue_at(i); ++i) {
        auto share = std::make_unique<Share>(code);
        const std::lock_guard lock(queue->mutex);
        if (queue->kept.empty()) continue;
        queue->reserve(1);
        const Owner owner{share.get(), &delete_owners<Share>};
        Owners owners(owner);
        owners.operations = 0;
        queue->keep(owners, queue->kept.back().mark);
        queue->count();
        static_cast<void>(share.release());  // the queue owns it
    }
}

void release_finished(StreamRef stream, KeptMark mark) noexcept {
    if (Driver::lost_by_fork()) return;
    release_owners_of_ended_graphs();
    try {
        OwnerQueue* const queue = find_queue(QueueKey::of(stream)).queue;
        if (queue == nullptr) return;
        if (queue->may_end) {  // some operations may belong to an earlier stream with this handle
            const ContextGuard context(stream.context());
            mark = pass_markers(*queue, *Driver::existing());
        }
        queue->release_until(mark);
    } catch (...) {  // a lock failed: the device's next synchronization releases the owners
    }
}

void release_finished(Device device, KeptMark mark) noexcept {
    if (Driver::lost_by_fork()) return;
    release_owners_of_ended_graphs();
    for (std::size_t i = 0; OwnerQueue* queue = queue_at(i); ++i) {
        {
            const std::lock_guard lock(queue->mutex);
            if (queue->key.stream.device() != device) continue;
        }
        try {
            const ContextGuard context(device.context());
            pass_markers(*queue, *Driver::existing());
        } catch (...) {  // the markers stay in the queue
        }
        queue->release_until(mark);
    }
}

void wait_and_release_kept(Device device) {
    if (Driver::lost_by_fork()) return;
    const Driver& driver = *Driver::existing();
    for (std::size_t i = 0; OwnerQueue* queue = queue_at(i); ++i) {
        std::optional<StreamRef> stream;  // empty if the handle may be stale
        {
            const std::lock_guard lock(queue->mutex);
            if (queue->key.stream.device() != device || queue->kept.empty()) continue;
            if (!queue->retired) stream = queue->key.stream;
        }
        if (stream && stream->handle() != 1 && owner_of(*stream) == nullptr) stream.reset();
        const KeptMark mark = kept_so_far();
        if (!stream) {
            while (wait_for_oldest_marker(*queue, driver)) {
            }
        } else if (!is_capturing(*stream) &&
                   is_over(wait_as_bookkeeping(driver, "memory that is in use", *stream))) {
            queue->release_until(mark);
        }
    }
}

std::size_t owners_held() noexcept { return owners_in_queues() + owners_in_foreign_graphs(); }

void launch_host_function(StreamRef stream, void (*function)(void*), void* data, const Owners& owners) {
    const OwnersKept kept(stream, owners);
    const Driver& driver = Driver::get();
    const ContextGuard context(stream.device().context());
    driver.check(driver.api().cuLaunchHostFunc(stream.native(), function, data), stream.native(),
                 "enqueuing a function of the host");
}

}  // namespace bascule
