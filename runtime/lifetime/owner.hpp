// An owner: something that is kept until the device has finished with its memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bascule {

/// Something to keep. `release` releases several at once, because it takes whatever lock they need (Python's: the
/// GIL).
struct Owner {
    void* object = nullptr;
    void (*release)(void* const* objects, std::size_t count) noexcept = nullptr;
    std::uint64_t bytes = 0;  ///< of memory that goes with it, as far as is known
};

/// The owners of an operation, or of several at once, which are released in the same way. Borrows the list of them.
struct Owners {
    Owners() = default;
    Owners(const Owner& owner) noexcept : Owners(&owner.object, 1, owner.release, owner.bytes) {}
    Owners(void* const* all, std::size_t how_many, decltype(Owner::release) how,
           std::uint64_t of_memory) noexcept
        : objects(all), count(how_many), release(how), bytes(of_memory) {}

    bool empty() const noexcept { return count == 0; }

    void* const* objects = nullptr;
    std::size_t count = 0;
    decltype(Owner::release) release = nullptr;
    std::uint64_t bytes = 0;       ///< of memory that goes with all of them, as far as is known
    std::uint32_t operations = 1;  ///< that have used them on the stream since they were handed over last
};

/// For objects that were made with `new`.
template <class T>
void delete_owners(void* const* objects, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) delete static_cast<T*>(objects[i]);
}

/// Releases all of them. No lock of ours is held: any code may run.
inline void release(const Owners& owners) noexcept {
    if (!owners.empty()) owners.release(owners.objects, owners.count);
}
inline void release(const std::vector<Owner>& owners) noexcept {
    for (const Owner& owner : owners) owner.release(&owner.object, 1);
}

/// Adds them to a list. Throws where there is no memory; then none was added.
inline void append(std::vector<Owner>& list, const Owners& owners) {
    list.reserve(list.size() + owners.count);
    for (std::size_t i = 0; i < owners.count; ++i) list.push_back({owners.objects[i], owners.release});
}

/// A moment in the order in which owners were handed over.
using KeptMark = std::uint64_t;

namespace detail {
inline std::atomic<KeptMark> newest_mark{0};
inline std::atomic<int> crowded_queues{0};  // owner_queue.hpp says what that is
}  // namespace detail

/// The mark of the newest operation. Taken before a synchronisation, so that what another thread enqueues
/// meanwhile is not taken for finished.
inline KeptMark kept_so_far() noexcept { return detail::newest_mark.load(std::memory_order_relaxed); }

}  // namespace bascule
