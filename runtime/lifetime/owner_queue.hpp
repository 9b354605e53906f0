// What is kept for each stream until its work is done: owners in the order in which they were handed over,
// and the markers between them. When a marker is set and who is waited for is
// <bascule/runtime/lifetime/lifetime.hpp>'s.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>

#include <bascule/runtime/lifetime/owner.hpp>
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
    void pop() noexcept { ++begin_; }
    bool has_room(std::size_t more) const noexcept { return size() + more <= capacity_; }
    void reserve(std::size_t more) {
        if (!has_room(more)) grow(more);
    }
    /// There is room: reserve comes first.
    void push(const T& value) noexcept { slots_[end_++ & mask_] = value; }
    /// What `make` returns, `count` times.
    template <class Make>
    void push(std::size_t count, Make make) noexcept {
        T* const slots = slots_.get();
        const std::size_t mask = mask_;
        const std::size_t first = end_;
        for (std::size_t i = 0; i < count; ++i) slots[(first + i) & mask] = make();
        end_ = first + count;
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

struct KeptOwner {
    void* object = nullptr;
    decltype(Owner::release) release = nullptr;
    KeptMark mark = 0;
};

struct Marker {
    CUevent_st* event = nullptr;
    KeptMark covers = 0;           // every owner up to this one
    std::uint64_t operations = 0;  // since the marker before
};

/// Which stream a queue serves. Handle 2 is another stream in every thread.
struct QueueKey {
    std::uint64_t handle = 0;
    int ordinal = 0;
    std::thread::id thread;

    static QueueKey of(StreamRef stream) noexcept;
    bool operator==(const QueueKey&) const = default;
};

/// What is kept for one stream. Reachable for ever, so that a thread may remember where its queue is; a
/// retired one serves the next new stream once it is empty.
struct OwnerQueue {
    std::mutex mutex;  // of everything here
    QueueKey key;      // also when retired: of which device the markers are
    bool retired = false;
    Ring<KeptOwner> owners;
    Ring<Marker> markers;
    std::uint64_t unmarked = 0;        // operations since the newest marker
    std::uint64_t unmarked_bytes = 0;  // that their owners hold
    std::uint64_t marked = 0;          // operations that markers cover

    /// Its owners, which are handed over at `mark`. The queue is locked and has room.
    void keep(std::span<const Owner> given, KeptMark mark) noexcept;
    /// Releases everything up to `mark`, in as many steps as it takes; locks, but not while an owner is
    /// released.
    void release_until(KeptMark mark) noexcept;
    Marker take_oldest_marker() noexcept;
};

/// A queue and its lock; none, where there is no queue.
struct LockedQueue {
    OwnerQueue* queue = nullptr;
    std::unique_lock<std::mutex> lock;
};

/// The queue of a stream. A thread's last one is found without the lock of all.
LockedQueue find_queue(const QueueKey& key);
/// The same; made where there is none. Throws where there is no memory.
LockedQueue find_or_make_queue(const QueueKey& key);

/// When a stream gets a marker: after so many operations, or when their owners hold so much memory.
constexpr std::uint64_t operations_a_marker = 64;
constexpr std::uint64_t bytes_a_marker = std::uint64_t{64} << 20;

/// The mark of one operation more, and that of the last one.
KeptMark next_mark() noexcept;
KeptMark newest_mark() noexcept;

/// What most launches need: the calling thread's last queue is the stream's, holds something already, has room and
/// needs no marker yet. False where that is not so; then nothing was done.
bool keep_in_last_queue(StreamRef stream, std::span<const Owner> owners) noexcept;

/// The queue with this number, unlocked; null behind the last one. Those with smaller numbers stay what they
/// are.
OwnerQueue* queue_at(std::size_t number) noexcept;

/// Owners in queues now.
std::size_t owners_in_queues() noexcept;

}  // namespace bascule
