// No lock is held while an owner is released: a release may take the GIL, run any code, and launch again.
#include <array>
#include <utility>
#include <vector>

#include <bascule/jit/process/never_destroyed.hpp>
#include <bascule/runtime/lifetime/owner_queue.hpp>
#include <bascule/runtime/streams/event.hpp>
#include <bascule/runtime/streams/stream.hpp>

namespace bascule {
namespace {

struct QueueRegistry {
    std::mutex mutex;
    std::vector<OwnerQueue*> queues;
};

QueueRegistry& queue_registry() { return never_destroyed<QueueRegistry>(); }  // destructors at exit use it

/// Finds a stream's queue, or makes it if `make` is true.
LockedQueue find(const QueueKey& key, bool make) {
    OwnerQueue*& last = thread_memory.queue;
    if (last != nullptr) {
        std::unique_lock lock(last->mutex);
        if (!last->retired && !last->may_end && last->key == key) return {last, std::move(lock)};
    }
    const bool may_end = make && key.stream.handle() > 2 && owner_of(key.stream) == nullptr;
    const std::lock_guard all(queue_registry().mutex);
    OwnerQueue* idle = nullptr;
    for (OwnerQueue* candidate : queue_registry().queues) {
        std::unique_lock lock(candidate->mutex);
        if (!candidate->retired && candidate->key == key) {
            if (make) candidate->may_end = may_end;  // a new stream of Bascule may have got the handle
            return {last = candidate, std::move(lock)};
        }
        if (candidate->is_idle()) idle = candidate;
    }
    if (!make) return {};
    if (idle == nullptr) {
        auto made = std::make_unique<OwnerQueue>(key);
        queue_registry().queues.push_back(made.get());
        idle = made.release();
    }
    std::unique_lock lock(idle->mutex);
    idle->key = key;
    idle->retired = false;
    idle->may_end = may_end;
    idle->asks = may_be_captured_by_others(key.stream);
    return {last = idle, std::move(lock)};
}

}  // namespace

LockedQueue find_queue(const QueueKey& key) { return find(key, false); }
LockedQueue find_or_make_queue(const QueueKey& key) { return find(key, true); }

OwnerQueue* queue_at(std::size_t number) noexcept {
    const std::lock_guard all(queue_registry().mutex);
    return number < queue_registry().queues.size() ? queue_registry().queues[number] : nullptr;
}

std::size_t owners_in_queues() noexcept {
    std::size_t count = 0;
    for (std::size_t i = 0; OwnerQueue* queue = queue_at(i); ++i) {
        const std::lock_guard lock(queue->mutex);
        count += queue->owners.size();
    }
    return count;
}

QueueKey QueueKey::of(StreamRef stream) noexcept {
    return {stream, stream.handle() == 2 ? number_of_this_thread() : 0};
}

void OwnerQueue::reserve(std::size_t more) {
    owners.reserve(more);
    kept.reserve(operations_a_marker);
}

void OwnerQueue::count() noexcept {
    quick = retired || asks || is_full() || unmarked + 1 >= operations_a_marker
                ? 0
                : std::min<std::uint64_t>(operations_a_marker - 1 - unmarked, kept.room());
}

Marker OwnerQueue::begin_marker(CUevent_st* event) noexcept {
    const std::uint64_t places = 1 + places_unmarked();
    several_places = false;
    unmarked = unmarked_bytes = 0;
    places_marked += places;
    ++markers_in_hand;
    count();
    return {event, kept_so_far(), places};
}

Marker OwnerQueue::take_oldest_marker() noexcept {
    const Marker oldest = markers.front();
    markers.pop();
    ++markers_in_hand;
    return oldest;
}

bool OwnerQueue::is_idle() const noexcept {
    return retired && kept.empty() && markers.empty() && markers_in_hand == 0;
}

void OwnerQueue::add(const Marker& marker) {
    const std::lock_guard lock(mutex);
    markers.reserve(markers_in_hand);  // room for this one, and for all that put_back may return
    markers.push(marker);
    --markers_in_hand;
}

void OwnerQueue::put_back(const Marker& marker) noexcept {
    const std::lock_guard lock(mutex);
    markers.push_front(marker);
    --markers_in_hand;
}

void OwnerQueue::drop(const Marker& marker) noexcept {
    EventPool::of(key.stream.device()).recycle(marker.event);
    const std::lock_guard lock(mutex);
    places_marked -= marker.places;
    --markers_in_hand;
}

void OwnerQueue::release_until(KeptMark mark) noexcept {
    std::array<void*, 256> objects;  // avoids an allocation; enough for most intervals between two markers
    for (;;) {
        std::size_t taken = 0;
        decltype(Owner::release) release = nullptr;
        {
            const std::lock_guard lock(mutex);
            while (!kept.empty() && taken < objects.size()) {
                KeptOwners& oldest = kept.front();
                if (oldest.mark > mark) break;
                if (taken > 0 && oldest.owners > 0 && oldest.release != release) break;
                if (oldest.owners > 0) release = oldest.release;
                for (; oldest.owners > 0 && taken < objects.size(); --oldest.owners, owners.pop())
                    objects[taken++] = owners.front();
                if (oldest.owners > 0) break;
                operations -= oldest.operations;
                kept.pop();
            }
            if (kept.empty()) unmarked = unmarked_bytes = 0;  // no marker is needed for an empty queue
            count();
        }
        if (taken == 0) return;
        release(objects.data(), taken);
    }
}

}  // namespace bascule
