// When a stream gets a marker, when owners are released, and which marker the host waits for where too much is held.
//
// No lock of ours is held while an owner is released or the host waits: a release may take Python's lock, run
// any code, and launch again. A forked child takes none of the locks (a thread that it lacks may hold them)
// and releases nothing: its parent's kernels still run.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/lifetime/bookkeeping.hpp>
#include <bascule/runtime/lifetime/captured_owners.hpp>
#include <bascule/runtime/lifetime/lifetime.hpp>
#include <bascule/runtime/lifetime/owner_queue.hpp>
#include <bascule/runtime/streams/capture.hpp>
#include <bascule/runtime/streams/event_pool.hpp>
#include <bascule/runtime/streams/observer.hpp>
#include <bascule/runtime/streams/stream.hpp>
#include <bascule/runtime/streams/wait_watch.hpp>

namespace bascule {
namespace {

/// Marks what the queue holds so far. The context is current, the call bookkeeping. Throws: CudaError.
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
    } catch (...) {  // the next marker covers what this one would have
        queue.drop(marker);
        throw;
    }
}

constexpr const char* room_in_a_queue = "room in the queue of a stream";

/// Whether what came before a marker is done, as the driver's answer tells: also when the context is lost or
/// gone, because nothing of it runs any more. Any other failure says nothing about the work.
bool is_over(CUresult code) noexcept {
    return code == CUDA_SUCCESS || code == CUDA_ERROR_DEINITIALIZED ||
           code == CUDA_ERROR_CONTEXT_IS_DESTROYED || loses_context(code);
}

/// The newest mark that has passed; 0 when none has.
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
        passed = std::max(passed, oldest.covers);  // two threads may have added theirs in either order
    }
}

/// Releases what was kept for streams that are gone, as far as it is done.
void collect_retired(Device device, const Driver& driver) noexcept {
    for (std::size_t i = 0; OwnerQueue* queue = queue_at(i); ++i) {
        {
            const std::lock_guard lock(queue->mutex);
            if (!queue->retired || queue->key.stream.device() != device || queue->markers.empty()) continue;
        }
        queue->release_until(pass_markers(*queue, driver));
    }
}

/// Waits for the oldest marker. Returns false if there is none, or the driver does not tell. Throws: WaitInterrupted; then the
/// marker stays.
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
    if (waited) queue.release_until(oldest.covers);  // else the next marker covers them
    return waited;
}

/// Adds a marker and releases what has finished. `not_captured`: the driver has just said so. Throws: CudaError.
void collect(OwnerQueue& queue, StreamRef stream, bool not_captured) {
    const Driver& driver = Driver::get();
    const ContextGuard context(stream.context());
    bool capturing = false;
    {
        const Bookkeeping bookkeeping(driver);
        capturing = !not_captured && is_capturing(stream);
        if (!capturing) mark(queue, stream, driver);
    }
    if (!capturing) {  // a marker would become part of the graph
        queue.release_until(pass_markers(queue, driver));
    }
    collect_retired(stream.device(), driver);
}

/// A driver waits inside the call that finds its queue full, where no signal can end it: so the host waits before.
/// Throws: CudaError, WaitInterrupted.
void wait_for_room(OwnerQueue& queue, StreamRef stream) {
    {
        const std::lock_guard lock(queue.mutex);
        if (!queue.is_full()) return;  // since markers have passed
    }
    const ContextGuard context(stream.context());
    wait_for_oldest_marker(queue, Driver::get());
}

/// The last resort: the owners are known to no queue.
void wait_and_release(StreamRef stream, const Owners& owners) noexcept {
    try {
        const ContextGuard context(stream.context());
        Driver::get().api().cuStreamSynchronize(stream.native());
    } catch (...) {  // a context that cannot be made current runs nothing
    }
    release(owners);
}

bool taken_by_foreign_graph(StreamRef stream, const Owners& owners, const CodeRef* code, StreamFacts facts) {
    std::optional<ContextGuard> context;
    if (facts == StreamFacts::none) context.emplace(stream.context());
    return retain_for_foreign_graph(stream, owners, code);
}

/// Where there is room for the owners; null when a foreign graph has taken them. No capture of others is announced, and a
/// stream that has work of ours may be captured next: the driver is asked each time, unless the stream is hidden.
LockedQueue queue_for(StreamRef stream, const Owners& owners, const CodeRef* code, StreamFacts facts) {
    const QueueKey key = QueueKey::of(stream);
    LockedQueue found = find_or_make_queue(key);
    if (!found.queue->asks || facts == StreamFacts::not_captured) return found;
    found.lock.unlock();
    if (taken_by_foreign_graph(stream, owners, code, facts)) return {};
    return find_or_make_queue(key);
}

/// Others may capture the stream from now on.
void note_given_out(StreamRef stream) noexcept {
    try {
        const LockedQueue found = find_queue(QueueKey::of(stream));
        if (found.queue == nullptr) return;
        found.queue->asks = true;
        found.queue->count();
    } catch (...) {  // a lock that fails
    }
}

/// What is kept for a stream that is about to be destroyed goes on being kept, under no handle, until its work is done.
/// Throws where it cannot be marked: then its owners stay until the device is synchronised. The context is current.
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
    } catch (...) {  // not marked
    }
}

/// The default streams of the calling thread (handle 2) on which Bascule has enqueued something. The driver destroys them
/// when the thread ends, after this object: until then the end of the thread is held up, for at most two seconds, so that
/// they are idle. Otherwise what is kept for them would wait for events of a stream that is gone, and a wait for the device
/// in another thread has met the destruction in a deadlock within the driver (driver 580, H100).
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
            retire_queue_of(own, driver);  // owners are released by other threads: this one can run no Python
            const Bookkeeping bookkeeping(driver);
            while (driver.api().cuStreamQuery(own.native()) == CUDA_ERROR_NOT_READY &&
                   std::chrono::steady_clock::now() < until) {
                std::this_thread::sleep_for(50us);
            }
        } catch (...) {  // a context that cannot be made current runs nothing
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

/// What few operations need. `owners` are taken. Returns false if a signal ended a wait.
[[gnu::noinline]] bool keep_in_any_queue(StreamRef stream, const Owners& owners, const CodeRef* code,
                                         StreamFacts facts) noexcept {
    set_stream_observer(ObservingPart::lifetime, observer);
    LockedQueue found;
    try {
        found = queue_for(stream, owners, code, facts);
        if (found.queue == nullptr) return true;
        found.queue->reserve(owners.count);
    } catch (...) {  // no memory
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
    if (due && facts == StreamFacts::not_captured) queue.several_places = true;  // an operation with fences
    const bool was_asked = queue.may_end && facts != StreamFacts::not_captured;  // by queue_for
    const bool was_full = queue.is_full();
    found.lock.unlock();
    if (!due && !was_full) return true;
    try {
        if (due) collect(queue, stream, was_asked);
        if (was_full) wait_for_room(queue, stream);
    } catch (const WaitInterrupted&) {
        return false;
    } catch (...) {  // the driver refuses markers
        wait_and_release(stream, {});
        queue.release_until(now);
    }
    return true;
}

}  // namespace

bool keep_until_done(StreamRef stream, const Owners& owners, ThreadMemory& memory, const CodeRef* code,
                     StreamFacts facts) noexcept {
    if ((owners.empty() && code == nullptr) || Driver::lost_by_fork()) return true;
    release_given_back();
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
        static_cast<void>(share.release());  // the queue's
    }
}

void release_finished(StreamRef stream, KeptMark mark) noexcept {
    if (Driver::lost_by_fork()) return;
    release_given_back();
    try {
        OwnerQueue* const queue = find_queue(QueueKey::of(stream)).queue;
        if (queue == nullptr) return;
        if (queue->may_end) {  // some of it may be of an earlier stream
            const ContextGuard context(stream.context());
            mark = pass_markers(*queue, *Driver::existing());
        }
        queue->release_until(mark);
    } catch (...) {  // a lock that fails: released at the device's next synchronisation
    }
}

void release_finished(Device device, KeptMark mark) noexcept {
    if (Driver::lost_by_fork()) return;
    release_given_back();
    for (std::size_t i = 0; OwnerQueue* queue = queue_at(i); ++i) {
        {
            const std::lock_guard lock(queue->mutex);
            if (queue->key.stream.device() != device) continue;
        }
        try {
            const ContextGuard context(device.context());
            pass_markers(*queue, *Driver::existing());
        } catch (...) {  // the markers stay
        }
        queue->release_until(mark);
    }
}

void wait_and_release_kept(Device device) {
    if (Driver::lost_by_fork()) return;
    const Driver& driver = *Driver::existing();
    for (std::size_t i = 0; OwnerQueue* queue = queue_at(i); ++i) {
        std::optional<StreamRef> stream;  // where it can be named without doubt
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

}  // namespace bascule
