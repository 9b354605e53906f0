// When a stream gets a marker, when owners are released, and whom the host waits for where too much is held.
//
// No lock of ours is held while an owner is released or the host waits: a release may take Python's lock, run
// any code, and launch again. A forked child takes none of the locks (a thread that it lacks may hold them)
// and releases nothing: its parent's kernels still run.
#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/emulated_device.hpp>
#include <bascule/runtime/lifetime/captured_owners.hpp>
#include <bascule/runtime/lifetime/lifetime.hpp>
#include <bascule/runtime/lifetime/owner_queue.hpp>
#include <bascule/runtime/streams/capture.hpp>
#include <bascule/runtime/streams/event_pool.hpp>
#include <bascule/runtime/streams/relaxed_capture.hpp>

namespace bascule {
namespace {

constexpr std::uint64_t most_operations = 1024;  // held by one stream

/// What the driver is asked while this lives is bookkeeping and no order: no trace shows it, and a capture
/// going on somewhere in this thread does not forbid it. Every call about a marker is made under one of
/// these; they do not nest.
class Bookkeeping {
  public:
    explicit Bookkeeping(const Driver& driver) noexcept : emulated_(driver.emulated_functions()) {
        if (emulated_ != nullptr) emulated_->bookkeeping(1);
    }
    ~Bookkeeping() {
        if (emulated_ != nullptr) emulated_->bookkeeping(0);
    }
    Bookkeeping(const Bookkeeping&) = delete;
    Bookkeeping& operator=(const Bookkeeping&) = delete;

  private:
    const RelaxedCapture relaxed_;
    const EmulatedFunctions* emulated_;
};

/// Or cannot be used now because others are captured: to touch the legacy default stream would break a
/// capture.
bool is_capturing(const Driver& driver, StreamRef stream) noexcept {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult code = driver.api().cuStreamIsCapturing(stream.native(), &status);
    return code == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ||
           (code == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE);
}

/// Marks what the queue holds so far. The queue is locked, the context current, the call bookkeeping.
/// Throws: CudaError.
void mark(OwnerQueue& queue, StreamRef stream, const Driver& driver) {
    EventPool& pool = EventPool::of(stream.device());
    queue.markers.reserve(1);
    CUevent event = pool.take();
    const DriverResult code = driver.api().cuEventRecord(event, stream.native());
    if (code != CUDA_SUCCESS) {
        pool.give_back(event);
        driver.check(code, "recording a marker event");
    }
    queue.markers.push({event, newest_mark(), queue.unmarked});
    queue.marked += queue.unmarked;
    queue.unmarked = queue.unmarked_bytes = 0;
}

/// Whether what came before a marker is done, as the driver's answer tells: also when the context is lost or
/// gone, because nothing of it runs any more. Any other failure says nothing about the work.
bool is_over(CUresult code) noexcept {
    return code == CUDA_SUCCESS || code == CUDA_ERROR_DEINITIALIZED ||
           code == CUDA_ERROR_CONTEXT_IS_DESTROYED || loses_context(code);
}

/// The newest mark that has passed, its markers given back; 0 when none has. The queue is locked, the call
/// bookkeeping.
KeptMark pass_markers(OwnerQueue& queue, Device device, const Driver& driver) noexcept {
    KeptMark passed = 0;
    while (!queue.markers.empty() && is_over(driver.api().cuEventQuery(queue.markers.front().event))) {
        const Marker oldest = queue.take_oldest_marker();
        EventPool::of(device).give_back(oldest.event);
        passed = oldest.covers;
    }
    return passed;
}

/// Releases what was kept for streams that are gone, as far as it is done.
void collect_retired(Device device, const Driver& driver) noexcept {
    for (std::size_t i = 0; OwnerQueue* queue = queue_at(i); ++i) {
        KeptMark passed = 0;
        {
            const std::lock_guard lock(queue->mutex);
            if (!queue->retired || queue->key.ordinal != device.ordinal() || queue->markers.empty()) continue;
            const Bookkeeping bookkeeping(driver);
            passed = pass_markers(*queue, device, driver);
        }
        queue->release_until(passed);
    }
}

/// Adds a marker and returns up to where owners can be released; waits when too much is held, without the
/// lock. Throws: CudaError.
KeptMark mark_and_look(OwnerQueue& queue, std::unique_lock<std::mutex>& lock, StreamRef stream) {
    const Driver& driver = Driver::get();
    const Bookkeeping bookkeeping(driver);
    if (is_capturing(driver, stream)) {  // a marker would become part of the graph
        ForeignCapture::note();
        return 0;
    }
    mark(queue, stream, driver);
    const KeptMark passed = pass_markers(queue, stream.device(), driver);
    if (queue.marked < most_operations) return passed;
    const Marker oldest =
        queue.take_oldest_marker();  // ours alone: no other thread gives it back while we wait
    lock.unlock();
    const bool waited = is_over(driver.api().cuEventSynchronize(oldest.event));
    EventPool::of(stream.device()).give_back(oldest.event);
    return waited ? oldest.covers : passed;  // else the next marker covers them
}

/// Unlocks; also when it throws CudaError.
void collect(OwnerQueue& queue, std::unique_lock<std::mutex> lock, StreamRef stream) {
    const ContextGuard context(stream.context());
    const KeptMark passed = mark_and_look(queue, lock, stream);
    if (lock.owns_lock()) lock.unlock();
    queue.release_until(passed);
    collect_retired(stream.device(), Driver::get());
}

/// The last resort: the owners are known to no queue.
void wait_and_release(StreamRef stream, std::span<const Owner> owners) noexcept {
    try {
        const ContextGuard context(stream.context());
        Driver::get().api().cuStreamSynchronize(stream.native());
    } catch (...) {  // a context that cannot be made current runs nothing
    }
    release(owners);
}

/// The legacy default stream is never captured.
bool taken_by_foreign_graph(StreamRef stream, std::span<const Owner> owners) {
    if (stream.handle() <= 1) return false;
    const ContextGuard context(stream.context());
    return retain_for_foreign_graph(stream, owners);
}

/// Where there is room for the owners; null when a foreign graph has taken them. Until somebody else's
/// capture was seen, that is asked of a stream for which nothing is kept, so once after each time that it was
/// waited for: another library that captures a stream lets its work finish before.
LockedQueue queue_for(StreamRef stream, std::span<const Owner> owners) {
    const bool ask = ForeignCapture::seen();
    if (ask && taken_by_foreign_graph(stream, owners)) return {};
    const QueueKey key = QueueKey::of(stream);
    LockedQueue found = find_or_make_queue(key);
    if (ask || !found.queue->owners.empty()) return found;
    found.lock.unlock();
    if (taken_by_foreign_graph(stream, owners)) return {};
    return find_or_make_queue(key);
}

}  // namespace

void keep_until_done(StreamRef stream, std::span<const Owner> owners) noexcept {
    if (owners.empty() || Driver::lost_by_fork()) return;
    release_given_back();
    if (NotedCapture::any() && keep_for_graph(stream, owners)) return;
    if (!ForeignCapture::seen() && keep_in_last_queue(stream, owners)) [[likely]]
        return;
    LockedQueue found;
    try {
        found = queue_for(stream, owners);
        if (found.queue == nullptr) return;
        found.queue->owners.reserve(owners.size());
    } catch (...) {  // no memory
        if (found.lock.owns_lock()) found.lock.unlock();
        wait_and_release(stream, owners);
        return;
    }
    OwnerQueue& queue = *found.queue;
    const KeptMark now = next_mark();
    queue.keep(owners, now);
    if (queue.unmarked < operations_a_marker && queue.unmarked_bytes < bytes_a_marker) [[likely]]
        return;
    try {
        collect(queue, std::move(found.lock), stream);
    } catch (...) {  // the driver refuses markers
        wait_and_release(stream, {});
        queue.release_until(now);
    }
}

KeptMark kept_so_far() noexcept { return newest_mark(); }

void release_finished(StreamRef stream, KeptMark mark) noexcept {
    if (Driver::lost_by_fork()) return;
    release_given_back();
    OwnerQueue* queue = nullptr;
    try {
        queue = find_queue(QueueKey::of(stream)).queue;
    } catch (...) {  // a lock that fails: released at the device's next synchronisation
    }
    if (queue != nullptr) queue->release_until(mark);
}

void release_finished(Device device, KeptMark mark) noexcept {
    if (Driver::lost_by_fork()) return;
    release_given_back();
    for (std::size_t i = 0; OwnerQueue* queue = queue_at(i); ++i) {
        {
            const std::lock_guard lock(queue->mutex);
            if (queue->key.ordinal != device.ordinal()) continue;
            const Bookkeeping bookkeeping(*Driver::existing());
            pass_markers(*queue, device, *Driver::existing());
        }
        queue->release_until(mark);
    }
}

void retire(StreamRef stream) noexcept {
    if (Driver::lost_by_fork()) return;
    try {
        auto [queue, lock] = find_queue(QueueKey::of(stream));
        if (queue == nullptr) return;
        queue->retired = true;
        if (queue->owners.empty()) return;
        const ContextGuard context(stream.context());
        {
            const Bookkeeping bookkeeping(Driver::get());
            if (is_capturing(Driver::get(), stream)) return;
            mark(*queue, stream, Driver::get());
        }
        lock.unlock();
        collect_retired(stream.device(), Driver::get());
    } catch (...) {  // not marked: its owners stay until the device is synchronised
    }
}

std::size_t owners_held() noexcept { return owners_in_queues() + owners_in_foreign_graphs(); }

}  // namespace bascule
