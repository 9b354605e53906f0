// Owners in a queue a stream, markers between them; released when a marker after them has passed.
//
// No lock of ours is held while an owner is released or the host waits: a release may take Python's lock, run
// any code, and launch again. A forked child takes none of the locks (a thread that it lacks may hold them)
// and releases nothing: its parent's kernels still run.
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <bascule/runtime/capture.hpp>
#include <bascule/runtime/captured_owners.hpp>
#include <bascule/runtime/driver.hpp>
#include <bascule/runtime/emulated_device.hpp>
#include <bascule/runtime/event_pool.hpp>
#include <bascule/runtime/lifetime.hpp>

namespace bascule {
namespace {

constexpr std::uint64_t operations_a_marker = 64;
constexpr std::uint64_t bytes_a_marker = std::uint64_t{64} << 20;
constexpr std::uint64_t most_operations = 1024;  // held by one stream

std::atomic<KeptMark> sequence{0};
std::atomic<std::size_t> held{0};

/// A queue in one growing block of memory: no allocation once it is as long as it gets.
template <typename T>
class Ring {
  public:
    bool empty() const noexcept { return size_ == 0; }
    std::size_t size() const noexcept { return size_; }
    T& front() noexcept { return slots_[first_]; }
    void pop() noexcept {
        first_ = (first_ + 1) & (slots_.size() - 1);
        --size_;
    }
    void reserve(std::size_t more) {
        if (size_ + more <= slots_.size()) return;
        std::size_t capacity = slots_.empty() ? 64 : slots_.size();
        while (capacity < size_ + more) capacity *= 2;
        std::vector<T> larger(capacity);
        for (std::size_t i = 0; i < size_; ++i) larger[i] = slots_[(first_ + i) & (slots_.size() - 1)];
        slots_.swap(larger);
        first_ = 0;
    }
    /// There is room: reserve comes first.
    void push(const T& value) noexcept { slots_[(first_ + size_++) & (slots_.size() - 1)] = value; }

  private:
    std::vector<T> slots_;
    std::size_t first_ = 0, size_ = 0;
};

struct Kept {
    Owner owner;
    KeptMark mark = 0;
};

struct Marker {
    CUevent event = nullptr;
    KeptMark covers = 0;           // every owner up to this one
    std::uint64_t operations = 0;  // since the marker before
};

/// Handle 2 is another stream in every thread.
struct Key {
    std::uint64_t handle = 0;
    int ordinal = 0;
    std::thread::id thread;
    bool operator==(const Key&) const = default;
};

Key key_of(StreamRef stream) noexcept {
    const bool per_thread = stream.handle() == 2;
    return {stream.handle(), stream.device().ordinal(),
            per_thread ? std::this_thread::get_id() : std::thread::id{}};
}

/// What is kept for one stream. Reachable for ever, so that a thread may remember where its queue is; a
/// retired one has no key and serves the next new stream once it is empty.
struct Queue {
    std::mutex mutex;
    Key key;
    int ordinal = 0;  // of the device, also when retired
    bool retired = false;
    Ring<Kept> owners;
    Ring<Marker> markers;
    std::uint64_t unmarked = 0;        // operations since the newest marker
    std::uint64_t unmarked_bytes = 0;  // that their owners hold
    std::uint64_t marked = 0;          // operations that markers cover
};

struct Registry {
    std::mutex mutex;
    std::vector<Queue*> queues;
};

Registry& registry() {
    static auto* made = new Registry;  // outlives every static object: destructors at exit release through it
    return *made;
}

/// Owners on their way out, a few at a time, without allocating.
class Batch {
  public:
    bool full() const noexcept { return size_ == owners_.size(); }
    void add(const Owner& owner) noexcept { owners_[size_++] = owner; }
    bool release() noexcept {
        for (std::size_t i = 0; i < size_; ++i) owners_[i].release(owners_[i].object);
        held.fetch_sub(size_, std::memory_order_relaxed);
        const bool any = size_ != 0;
        size_ = 0;
        return any;
    }

  private:
    std::array<Owner, 64> owners_;
    std::size_t size_ = 0;
};

void take_until(Queue& queue, KeptMark mark, Batch& batch) noexcept {
    while (!batch.full() && !queue.owners.empty() && queue.owners.front().mark <= mark) {
        batch.add(queue.owners.front().owner);
        queue.owners.pop();
    }
}

/// Releases everything up to `mark`, in as many steps as it takes.
void release_until(Queue& queue, KeptMark mark) noexcept {
    Batch batch;
    do {
        const std::lock_guard lock(queue.mutex);
        take_until(queue, mark, batch);
    } while (batch.release());
}

/// The queue of a key, locked. A thread's last queue is found without the registry's lock.
std::unique_lock<std::mutex> find_queue(const Key& key, Queue*& queue, bool make) {
    thread_local Queue* last = nullptr;
    if (last != nullptr) {
        std::unique_lock lock(last->mutex);
        if (!last->retired && last->key == key) {
            queue = last;
            return lock;
        }
    }
    const std::lock_guard all(registry().mutex);
    Queue* idle = nullptr;
    for (Queue* candidate : registry().queues) {
        std::unique_lock lock(candidate->mutex);
        if (!candidate->retired && candidate->key == key) {
            queue = last = candidate;
            return lock;
        }
        if (candidate->retired && candidate->owners.empty() && candidate->markers.empty()) idle = candidate;
    }
    queue = nullptr;
    if (!make) return {};
    if (idle == nullptr) {
        auto made = std::make_unique<Queue>();
        registry().queues.push_back(made.get());
        idle = made.release();
    }
    std::unique_lock lock(idle->mutex);
    idle->key = key;
    idle->ordinal = key.ordinal;
    idle->retired = false;
    idle->unmarked = idle->unmarked_bytes = 0;
    queue = last = idle;
    return lock;
}

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
void mark(Queue& queue, StreamRef stream, const Driver& driver) {
    EventPool& pool = EventPool::of(stream.device());
    queue.markers.reserve(1);
    CUevent event = pool.take();
    const CUresult code = driver.api().cuEventRecord(event, stream.native());
    if (code != CUDA_SUCCESS) {
        pool.give_back(event);
        driver.check(code, "cuEventRecord", "marking what a stream holds");
    }
    queue.markers.push({event, sequence.load(std::memory_order_relaxed), queue.unmarked});
    queue.marked += queue.unmarked;
    queue.unmarked = queue.unmarked_bytes = 0;
}

Marker take_oldest(Queue& queue) noexcept {
    const Marker oldest = queue.markers.front();
    queue.markers.pop();
    queue.marked -= oldest.operations;
    return oldest;
}

/// Whether what came before a marker is done, as the driver's answer tells: also when the context is lost or
/// gone, because nothing of it runs any more. Any other failure says nothing about the work.
bool is_over(CUresult code) noexcept {
    return code == CUDA_SUCCESS || code == CUDA_ERROR_DEINITIALIZED ||
           code == CUDA_ERROR_CONTEXT_IS_DESTROYED || loses_context(code);
}

/// The newest mark that has passed, its markers given back; 0 when none has. The queue is locked, the call
/// bookkeeping.
KeptMark pass_markers(Queue& queue, Device device, const Driver& driver) noexcept {
    KeptMark passed = 0;
    while (!queue.markers.empty() && is_over(driver.api().cuEventQuery(queue.markers.front().event))) {
        const Marker oldest = take_oldest(queue);
        EventPool::of(device).give_back(oldest.event);
        passed = oldest.covers;
    }
    return passed;
}

/// Releases what was kept for streams that are gone, as far as it is done.
void collect_retired(Device device, const Driver& driver) noexcept {
    for (std::size_t i = 0;; ++i) {
        Queue* queue = nullptr;
        {
            const std::lock_guard all(registry().mutex);
            if (i >= registry().queues.size()) return;
            queue = registry().queues[i];
        }
        KeptMark passed = 0;
        {
            const std::lock_guard lock(queue->mutex);
            if (!queue->retired || queue->ordinal != device.ordinal() || queue->markers.empty()) continue;
            const Bookkeeping bookkeeping(driver);
            passed = pass_markers(*queue, device, driver);
        }
        release_until(*queue, passed);
    }
}

/// Adds a marker and returns up to where owners can be released; waits when too much is held, without the
/// lock. Throws: CudaError.
KeptMark mark_and_look(Queue& queue, std::unique_lock<std::mutex>& lock, StreamRef stream) {
    const Driver& driver = Driver::get();
    const Bookkeeping bookkeeping(driver);
    if (is_capturing(driver, stream)) {  // a marker would become part of the graph
        OthersCapture::note();
        return 0;
    }
    mark(queue, stream, driver);
    const KeptMark passed = pass_markers(queue, stream.device(), driver);
    if (queue.marked < most_operations) return passed;
    const Marker oldest = take_oldest(queue);  // ours alone now: nobody gives it back while we wait
    lock.unlock();
    const bool waited = is_over(driver.api().cuEventSynchronize(oldest.event));
    EventPool::of(stream.device()).give_back(oldest.event);
    return waited ? oldest.covers : passed;  // else the next marker covers them
}

/// Unlocks; also when it throws CudaError.
void collect(Queue& queue, std::unique_lock<std::mutex> lock, StreamRef stream) {
    const ContextGuard context(stream.context());
    const KeptMark passed = mark_and_look(queue, lock, stream);
    if (lock.owns_lock()) lock.unlock();
    release_until(queue, passed);
    collect_retired(stream.device(), Driver::get());
}

/// The last resort: the owners are known to no queue.
void wait_and_release(StreamRef stream, std::span<const Owner> owners) noexcept {
    try {
        const ContextGuard context(stream.context());
        Driver::get().api().cuStreamSynchronize(stream.native());
    } catch (...) {  // a context that cannot be made current runs nothing
    }
    for (const Owner& owner : owners) owner.release(owner.object);
}

/// The legacy default stream is never captured.
bool taken_by_others(StreamRef stream, std::span<const Owner> owners) {
    if (stream.handle() <= 1) return false;
    const ContextGuard context(stream.context());
    return keep_for_graph_of_others(stream, owners);
}

/// Where there is room for the owners; null when a graph of others has taken them. Until somebody else's
/// capture was seen, that is asked of a stream for which nothing is kept, so once after each time that it was
/// waited for: another library that captures a stream lets its work finish before.
std::unique_lock<std::mutex> queue_for(StreamRef stream, std::span<const Owner> owners, Queue*& queue) {
    const bool ask = OthersCapture::seen();
    if (ask && taken_by_others(stream, owners)) return {};
    const Key key = key_of(stream);
    auto lock = find_queue(key, queue, true);
    if (!ask && queue->owners.empty()) {
        lock.unlock();
        queue = nullptr;
        if (taken_by_others(stream, owners)) return {};
        lock = find_queue(key, queue, true);
    }
    return lock;
}

}  // namespace

void keep_until_done(StreamRef stream, std::span<const Owner> owners) noexcept {
    if (owners.empty() || Driver::lost_by_fork()) return;
    release_given_back();
    if (keep_for_graph(stream, owners)) return;
    Queue* queue = nullptr;
    std::unique_lock<std::mutex> lock;
    try {
        lock = queue_for(stream, owners, queue);
        if (queue == nullptr) return;
        queue->owners.reserve(owners.size());
    } catch (...) {  // no memory
        if (lock.owns_lock()) lock.unlock();
        wait_and_release(stream, owners);
        return;
    }
    const KeptMark now = sequence.fetch_add(1, std::memory_order_relaxed) + 1;
    for (const Owner& owner : owners) {
        queue->owners.push({owner, now});
        queue->unmarked_bytes += owner.bytes;
    }
    held.fetch_add(owners.size(), std::memory_order_relaxed);
    if (++queue->unmarked < operations_a_marker && queue->unmarked_bytes < bytes_a_marker) [[likely]]
        return;
    try {
        collect(*queue, std::move(lock), stream);
    } catch (...) {  // the driver refuses markers
        wait_and_release(stream, {});
        release_until(*queue, now);
    }
}

KeptMark kept_so_far() noexcept { return sequence.load(); }

void release_finished(StreamRef stream, KeptMark mark) noexcept {
    Queue* queue = nullptr;
    if (Driver::lost_by_fork()) return;
    release_given_back();
    try {
        find_queue(key_of(stream), queue, false);
    } catch (...) {  // a lock that fails: released at the device's next synchronisation
    }
    if (queue != nullptr) release_until(*queue, mark);
}

void release_finished(Device device, KeptMark mark) noexcept {
    if (Driver::lost_by_fork()) return;
    release_given_back();
    for (std::size_t i = 0;; ++i) {
        Queue* queue = nullptr;
        {
            const std::lock_guard all(registry().mutex);
            if (i >= registry().queues.size()) return;
            queue = registry().queues[i];
        }
        {
            const std::lock_guard lock(queue->mutex);
            if (queue->ordinal != device.ordinal()) continue;
            const Bookkeeping bookkeeping(*Driver::existing());
            pass_markers(*queue, device, *Driver::existing());
        }
        release_until(*queue, mark);
    }
}

void retire(StreamRef stream) noexcept {
    if (Driver::lost_by_fork()) return;
    Queue* queue = nullptr;
    std::unique_lock<std::mutex> lock;
    try {
        lock = find_queue(key_of(stream), queue, false);
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

std::size_t owners_held() noexcept { return held.load() + owners_in_graphs_of_others(); }

}  // namespace bascule
