// An owner: something that is kept until the device has finished with its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace bascule {

/// Something to keep. `release` releases several at once, because it takes whatever lock they need (Python's: the
/// GIL).
struct Owner {
    void* object = nullptr;
    void (*release)(void* const* objects, std::size_t count) noexcept = nullptr;
    std::uint64_t bytes = 0;  ///< of memory that goes with it, as far as is known
};

/// For objects that were made with `new`.
template <class T>
void delete_owners(void* const* objects, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) delete static_cast<T*>(objects[i]);
}

/// Releases all of them. No lock of ours is held: any code may run.
inline void release(std::span<const Owner> owners) noexcept {
    for (const Owner& owner : owners) owner.release(&owner.object, 1);
}

/// A moment in the order in which owners were handed over.
using KeptMark = std::uint64_t;

}  // namespace bascule
