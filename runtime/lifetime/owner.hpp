// An owner: something that is kept until the device has finished with its memory.
#pragma once

#include <cstdint>

namespace bascule {

/// Something to keep: `release(object)` releases it. Release functions take whatever lock they need
/// (Python's: the GIL).
struct Owner {
    void* object = nullptr;
    void (*release)(void*) noexcept = nullptr;
    std::uint64_t bytes = 0;  ///< of memory that goes with it, as far as is known
};

/// A moment in the order in which owners were handed over.
using KeptMark = std::uint64_t;

}  // namespace bascule
