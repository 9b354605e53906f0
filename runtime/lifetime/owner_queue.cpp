// No lock is held while an owner is released: a release may take Python's lock, run any code, and launch
// again.
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <bascule/runtime/lifetime/owner_queue.hpp>

namespace bascule {
namespace {

struct QueueRegistry {
    std::mutex mutex;
    std::vector<OwnerQueue*> queues;
};

QueueRegistry& queue_registry() {
    static auto* made =
        new QueueRegistry;  // outlives every static object: destructors at exit release through it
    return *made;
}

std::uint64_t bytes_of(std::span<const Owner> owners) noexcept {
    std::uint64_t bytes = 0;
    for (const Owner& owner : owners) bytes += owner.bytes;
    return bytes;
}

std::atomic<KeptMark> sequence{0};
constinit thread_local OwnerQueue* last = nullptr;

/// Makes one where there is none.
LockedQueue find(const QueueKey& key, bool make) {
    if (last != nullptr) {
        std::unique_lock lock(last->mutex);
        if (!last->retired && last->key == key) return {last, std::move(lock)};
    }
    const std::lock_guard all(queue_registry().mutex);
    OwnerQueue* idle = nullptr;
    for (OwnerQueue* candidate : queue_registry().queues) {
        std::unique_lock lock(candidate->mutex);
        if (!candidate->retired && candidate->key == key) return {last = candidate, std::move(lock)};
        if (candidate->retired && candidate->owners.empty() && candidate->markers.empty()) idle = candidate;
    }
    if (!make) return {};
    if (idle == nullptr) {
        auto made = std::make_unique<OwnerQueue>();
        queue_registry().queues.push_back(made.get());
        idle = made.release();
    }
    std::unique_lock lock(idle->mutex);
    idle->key = key;
    idle->retired = false;
    idle->unmarked = idle->unmarked_bytes = 0;
    return {last = idle, std::move(lock)};
}

}  // namespace

LockedQueue find_queue(const QueueKey& key) { return find(key, false); }
LockedQueue find_or_make_queue(const QueueKey& key) { return find(key, true); }

OwnerQueue* queue_at(std::size_t number) noexcept {
    const std::lock_guard all(queue_registry().mutex);
    return number < queue_registry().queues.size() ? queue_registry().queues[number] : nullptr;
}

KeptMark next_mark() noexcept { return sequence.fetch_add(1, std::memory_order_relaxed) + 1; }
KeptMark newest_mark() noexcept { return sequence.load(); }

bool keep_in_last_queue(StreamRef stream, std::span<const Owner> owners) noexcept {
    OwnerQueue* const queue = last;
    if (queue == nullptr || stream.handle() == 2) return false;  // 2 is another stream in every thread
    const std::lock_guard lock(queue->mutex);
    if (queue->key.handle != stream.handle() || queue->key.ordinal != stream.device().ordinal() ||
        queue->retired || queue->owners.empty() || !queue->owners.has_room(owners.size()) ||
        queue->unmarked + 1 >= operations_a_marker ||
        queue->unmarked_bytes + bytes_of(owners) >= bytes_a_marker) {
        return false;
    }
    queue->keep(owners, next_mark());
    return true;
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
    const bool per_thread = stream.handle() == 2;
    return {stream.handle(), stream.device().ordinal(),
            per_thread ? std::this_thread::get_id() : std::thread::id{}};
}

void OwnerQueue::keep(std::span<const Owner> given, KeptMark mark) noexcept {
    owners.push(given.size(), [&, next = given.data()]() mutable {
        const Owner& owner = *next++;
        return KeptOwner{owner.object, owner.release, mark};
    });
    unmarked_bytes += bytes_of(given);
    ++unmarked;
}

void OwnerQueue::release_until(KeptMark mark) noexcept {
    std::array<void*, 64> objects;  // a few at a time, without allocating
    for (;;) {
        std::size_t count = 0;
        decltype(Owner::release) release = nullptr;
        {
            const std::lock_guard lock(mutex);
            for (; count < objects.size() && !owners.empty(); owners.pop()) {
                const KeptOwner& oldest = owners.front();
                if (oldest.mark > mark || (count > 0 && oldest.release != release)) break;
                release = oldest.release;
                objects[count++] = oldest.object;
            }
            if (owners.empty()) unmarked = unmarked_bytes = 0;  // nothing is left for a marker to tell of
        }
        if (count == 0) return;
        release(objects.data(), count);
    }
}

Marker OwnerQueue::take_oldest_marker() noexcept {
    const Marker oldest = markers.front();
    markers.pop();
    marked -= oldest.operations;
    return oldest;
}

}  // namespace bascule
