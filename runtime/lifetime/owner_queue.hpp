// For each stream, a queue of owners in order of submission, with markers between them. Owners are kept until the stream's
// work is done. <bascule/runtime/lifetime/lifetime.hpp> decides when to set a marker and which one to wait for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>

#include <bascule/runtime/lifetime/thread_memory.hpp>
#include <bascule/runtime/streams/owner.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>

struct CUevent_st;

namespace bascule {

/// Guards a few statements that do not wait. Without contention, locking and unlocking take one atomic exchange each.
/// It must not be destroyed while a thread is still inside `unlock`. Use it with std::lock_guard and std::unique_lock.
class ShortMutex {
  public:
    void lock() noexcept {
        if (state_.exchange(locked, std::memory_order_acquire) != open) [[unlikely]]
            wait();
    }
    void unlock() noexcept {
        if (state_.exchange(open, std::memory_order_release) == awaited) [[unlikely]]
            state_.notify_one();
    }

  private:
    static constexpr int open = 0, locked = 1, awaited = 2;  // awaited: locked, and a thread may be waiting

    [[gnu::cold, gnu::noinline]] void wait() noexcept {
        while (state_.exchange(awaited, std::memory_order_acquire) != open)
            state_.wait(awaited, std::memory_order_relaxed);
    }

    std::atomic<int> state_{open};
};

/// A queue in one growing block of memory. Allocates only when it grows.
template <typename T>
class Ring {
  public:
    bool empty() const noexcept { return begin_ == end_; }
    std::size_t size() const noexcept { return end_ - begin_; }
    T& front() noexcept { return slots_[begin_ & mask_]; }
    T& back() noexcept { return slots_[(end_ - 1) & mask_]; }
    void pop() noexcept { ++begin_; }
    std::size_t room() const noexcept { return capacity_ - size(); }
    void reserve(std::size_t more) {
        if (more > room()) grow(more);
    }
    /// `push` and `push_front` require room: call `reserve` first.
    void push(const T& value) noexcept { slots_[end_++ & mask_] = value; }
    void push_front(const T& value) noexcept { slots_[--begin_ & mask_] = value; }
    void push(const T* values, std::size_t count) noexcept {
        T* const slots = slots_.get();
        const std::size_t mask = mask_;
        std::size_t end = end_;
        for (const T* const last = values + count; values != last; ++values) slots[end++ & mask] = *values;
        end_ = end;
    }

  private:
    void grow(std::size_t more) {
        std::size_t capacity = capacity_ == 0 ? 64 : capacity_;
        while (capacity < size() + more) capacity *= 2;
        auto larger = std::make_unique<T[]>(capacity);
        const std::size_t count = size();
        for (std::size_t i = 0; i < count; ++i) larger[i] = slots_[(begin_ + i) & mask_];
        slots_ = std::move(larger);
        capacity_ = capacity;
        mask_ = capacity - 1;
        begin_ = 0;
        end_ = count;
    }

    std::unique_ptr<T[]> slots_;
    std::size_t capacity_ = 0, mask_ = 0;
    std::size_t begin_ = 0, end_ = 0;  // only ever increase; the slot is the index modulo the capacity
};

/// Owners that were passed in by one call: the next `owners` entries of OwnerQueue::owners.
struct KeptOwners {
    KeptMark mark = 0;
    decltype(Owner::release) release = nullptr;
    std::uint32_t owners = 0;
    std::uint32_t operations = 0;
};

struct Marker {
    CUevent_st* event = nullptr;
    KeptMark covers = 0;       // the newest operation that it covers
    std::uint64_t places = 0;  // of the driver's queue, for it and the operations since the marker before
};

/// Identifies the stream of a queue. Handle 2 is a different stream in each thread.
struct QueueKey {
    StreamRef stream;
    std::uint64_t thread = 0;  // only for handle 2

    static QueueKey of(StreamRef stream) noexcept;
    bool operator==(const QueueKey&) const = default;
};

/// The host waits for the oldest marker when operations and markers take this many places of the driver's queue. The queue
/// has about 1,024; the others are for other streams and libraries.
constexpr std::uint64_t most_places = 768;
/// The most places that an operation takes: with a wait before it and an event record after it, or with an allocation
/// and its free.
constexpr std::uint64_t most_places_of_an_operation = 3;

/// The owners kept for one stream. A queue is never freed, so that a thread may cache a pointer to it. A retired queue
/// is reused for a new stream once it is empty.
struct OwnerQueue {
    explicit OwnerQueue(const QueueKey& the_key) noexcept : key(the_key) {}

    ShortMutex mutex;  // guards all members
    QueueKey key;      // after retirement, still names the device of the markers
    bool retired = false;
    /// True if other code owns the stream. It may destroy it, and the driver may reuse the handle for another stream.
    /// Every operation then has a marker, and only markers tell what is done.
    bool may_end = false;
    bool asks = true;  // before keeping, ask the driver whether other code captures the stream
    std::atomic<bool> several_places{false};  // an unmarked operation may take several; set without the lock
    Ring<KeptOwners> kept;
    Ring<void*> owners;
    Ring<Marker> markers;
    std::size_t markers_in_hand = 0;   // removed from the ring while being recorded or queried
    std::uint64_t operations = 0;      // number of operations whose owners are kept
    std::uint64_t places_marked = 0;   // of the driver's queue: pending markers and the operations before
    std::uint64_t unmarked = 0;        // operations since the newest marker
    std::uint64_t unmarked_bytes = 0;  // memory that the owners of `unmarked` operations hold
    std::uint64_t quick = 0;           // operations that keep_in_last_queue may add without another check

    // The caller holds the mutex:

    /// Makes room for `more` owners. Throws std::bad_alloc.
    void reserve(std::size_t more);
    /// Adds owners at `mark`. There must be room.
    void keep(const Owners& given, KeptMark mark) noexcept {
        owners.push(given.objects, given.count);
        kept.push({mark, given.release, static_cast<std::uint32_t>(given.count), given.operations});
        operations += given.operations;
        unmarked += given.operations;
        unmarked_bytes += given.bytes;
    }
    /// The most places of the driver's queue that the operations since the newest marker can take.
    std::uint64_t places_unmarked() const noexcept {
        return unmarked * (several_places.load(std::memory_order_relaxed) ? most_places_of_an_operation : 1);
    }
    bool is_full() const noexcept { return places_marked + places_unmarked() >= most_places; }
    /// Recomputes `quick`. Call it after each change of the queue.
    void count() noexcept;
    /// Returns a marker that covers what is kept so far. The caller records its event and calls `add`.
    Marker begin_marker(CUevent_st* event) noexcept;
    /// Removes the oldest marker for a query. The caller then calls `drop` or `put_back`. There must be one.
    Marker take_oldest_marker() noexcept;
    /// True if the queue is retired and empty.
    bool is_idle() const noexcept;

    // The caller does not hold the mutex; these functions lock it:

    /// Adds a marker after its event was recorded. Throws std::bad_alloc.
    void add(const Marker& marker);
    /// Returns a marker whose event has not completed.
    void put_back(const Marker& marker) noexcept;
    /// Discards a marker whose event has completed or was not recorded.
    void drop(const Marker& marker) noexcept;
    /// Releases everything up to `mark`, in several steps. The mutex is unlocked while an owner is released.
    void release_until(KeptMark mark) noexcept;
};

/// A locked queue, or null.
struct LockedQueue {
    OwnerQueue* queue = nullptr;
    std::unique_lock<ShortMutex> lock;
};

/// Finds the queue of a stream. The thread's last queue is found without locking the registry.
LockedQueue find_queue(const QueueKey& key);
/// The same, but makes the queue if it does not exist. Throws std::bad_alloc.
LockedQueue find_or_make_queue(const QueueKey& key);

/// A stream gets a marker after this many operations, or when their owners hold this much memory.
constexpr std::uint64_t operations_a_marker = 64;
constexpr std::uint64_t bytes_a_marker = std::uint64_t{64} << 20;

/// The mark of the next operation.
inline KeptMark next_mark() noexcept {
    return detail::newest_mark.fetch_add(1, std::memory_order_relaxed) + 1;
}

/// The fast path of most launches: adds the owners to the thread's last queue if it belongs to `stream`, other code
/// cannot capture the stream, there is room and no marker is due. Otherwise returns false and does nothing.
inline bool keep_in_last_queue(const ThreadMemory& memory, StreamRef stream, const Owners& owners) noexcept {
    OwnerQueue* const queue = memory.queue;
    if (queue == nullptr) return false;
    const std::lock_guard lock(queue->mutex);
    const std::uint32_t taken = std::max(owners.operations, 1U);
    if (queue->quick < taken || queue->key.stream != stream || queue->owners.room() < owners.count ||
        queue->unmarked_bytes + owners.bytes >= bytes_a_marker) {
        return false;
    }
    queue->quick -= taken;
    queue->keep(owners, next_mark());
    return true;
}

/// Notes that the next operation of the stream that the calling thread used last may take several places.
inline void note_several_places(const ThreadMemory& memory) noexcept {
    if (memory.queue != nullptr) memory.queue->several_places.store(true, std::memory_order_relaxed);
}

/// The queue with this index, unlocked. Null after the last one. Existing indices never change.
OwnerQueue* queue_at(std::size_t number) noexcept;

/// The number of owners in all queues.
std::size_t owners_in_queues() noexcept;

}  // namespace bascule
