// What is kept for each stream until its work is done: owners in the order in which they were handed over,
// and the markers between them. When a marker is set and which one is waited for is
// <bascule/runtime/lifetime/lifetime.hpp>'s.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include <bascule/runtime/lifetime/short_mutex.hpp>
#include <bascule/runtime/lifetime/thread_memory.hpp>
#include <bascule/runtime/streams/owner.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>

struct CUevent_st;

namespace bascule {

/// A queue in one growing block of memory: no allocation once it is as long as it gets.
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
    /// There is room: reserve comes first.
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
    std::size_t begin_ = 0, end_ = 0;  // count up for ever; places are below the mask
};

/// What was handed over at once: the next `owners` of the queue's.
struct KeptOwners {
    KeptMark mark = 0;
    decltype(Owner::release) release = nullptr;
    std::uint32_t owners = 0;
    std::uint32_t operations = 0;
};

struct Marker {
    CUevent_st* event = nullptr;
    KeptMark covers = 0;       // every operation up to this one
    std::uint64_t places = 0;  // that it and the operations since the last one take in the driver's queue
};

/// Which stream a queue serves. Handle 2 is another stream in every thread.
struct QueueKey {
    StreamRef stream;
    std::uint64_t thread = 0;  // of handle 2

    static QueueKey of(StreamRef stream) noexcept;
    bool operator==(const QueueKey&) const = default;
};

/// Where an operation or a marker takes a place each, the host waits for the oldest marker when so many are taken. A driver's queue has
/// about 1,024: the rest is for what other streams and libraries have there.
constexpr std::uint64_t most_places = 768;
/// Of an operation with a wait and a fence, or with an allocation and its free.
constexpr std::uint64_t most_places_of_an_operation = 3;

/// What is kept for one stream. Reachable for ever, so that a thread may remember where its queue is; a
/// retired one serves the next new stream once nothing of it is left.
struct OwnerQueue {
    explicit OwnerQueue(const QueueKey& the_key) noexcept : key(the_key) {}

    ShortMutex mutex;  // of everything here
    QueueKey key;      // also when retired: of which device the markers are
    bool retired = false;
    /// Whether other code owns the stream: it may destroy it, and the driver may give its handle to another one. Then every
    /// operation has a marker, and only markers tell what is done.
    bool may_end = false;
    bool asks = true;  // whether others capture the stream, before it keeps anything for an operation
    std::atomic<bool> several_places{false};  // unmarked operations may take them; set without the lock
    Ring<KeptOwners> kept;
    Ring<void*> owners;
    Ring<Marker> markers;
    std::size_t markers_in_hand = 0;  // not in the ring: being recorded, or asked about
    std::uint64_t operations = 0;     // whose owners are kept
    std::uint64_t places_marked =
        0;  // in the driver's queue, up to the newest marker and without those that passed
    std::uint64_t unmarked = 0;        // operations since the newest marker
    std::uint64_t unmarked_bytes = 0;  // that their owners hold
    std::uint64_t quick = 0;           // operations that keep_in_last_queue may take

    // The queue is locked:

    /// Makes room for so many. Throws where there is no memory.
    void reserve(std::size_t more);
    /// What is handed over at `mark`. There is room.
    void keep(const Owners& given, KeptMark mark) noexcept {
        owners.push(given.objects, given.count);
        kept.push({mark, given.release, static_cast<std::uint32_t>(given.count), given.operations});
        operations += given.operations;
        unmarked += given.operations;
        unmarked_bytes += given.bytes;
    }
    /// Of operations that have no marker yet.
    std::uint64_t places_unmarked() const noexcept {
        return unmarked * (several_places.load(std::memory_order_relaxed) ? most_places_of_an_operation : 1);
    }
    bool is_full() const noexcept { return places_marked + places_unmarked() >= most_places; }
    /// The queue has changed: what follows from its size.
    void count() noexcept;
    /// A marker for what is kept so far. Its event is to be recorded, and the marker added.
    Marker begin_marker(CUevent_st* event) noexcept;
    /// To ask whether it has passed; then it is dropped or put back. There is one.
    Marker take_oldest_marker() noexcept;
    /// Whether nothing is left of the stream that it served.
    bool is_idle() const noexcept;

    // It is not, and these lock it:

    /// The marker was recorded. Throws where there is no memory.
    void add(const Marker& marker);
    /// It has not passed.
    void put_back(const Marker& marker) noexcept;
    /// It has passed, or was not recorded.
    void drop(const Marker& marker) noexcept;
    /// Releases everything up to `mark`, in as many steps as it takes; unlocked while an owner is released.
    void release_until(KeptMark mark) noexcept;
};

/// A queue and its lock; none, where there is no queue.
struct LockedQueue {
    OwnerQueue* queue = nullptr;
    std::unique_lock<ShortMutex> lock;
};

/// The queue of a stream. A thread's last one is found without the lock of all.
LockedQueue find_queue(const QueueKey& key);
/// The same; made where there is none. Throws where there is no memory.
LockedQueue find_or_make_queue(const QueueKey& key);

/// When a stream gets a marker: after so many operations, or when their owners hold so much memory.
constexpr std::uint64_t operations_a_marker = 64;
constexpr std::uint64_t bytes_a_marker = std::uint64_t{64} << 20;

/// The mark of one operation more.
inline KeptMark next_mark() noexcept {
    return detail::newest_mark.fetch_add(1, std::memory_order_relaxed) + 1;
}

/// What most launches need: the calling thread's last queue is the stream's, which other code cannot capture, has room
/// and needs no marker yet. False where that is not so; then nothing was done.
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

/// What the calling thread enqueues where it enqueued last may take several places of the driver's queue.
inline void note_several_places(const ThreadMemory& memory) noexcept {
    if (memory.queue != nullptr) memory.queue->several_places.store(true, std::memory_order_relaxed);
}

/// The queue with this number, unlocked; null behind the last one. Those with smaller numbers stay what they
/// are.
OwnerQueue* queue_at(std::size_t number) noexcept;

/// Owners in queues now.
std::size_t owners_in_queues() noexcept;

}  // namespace bascule
