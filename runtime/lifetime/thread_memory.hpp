// What a thread remembers from one launch to the next.
#pragma once

#include <atomic>
#include <cstdint>

namespace bascule {

struct LaunchRing;
struct OwnerQueue;

/// All of it in one object: in a shared library, finding a thread-local object is a call.
struct ThreadMemory {
    OwnerQueue* queue = nullptr;    ///< that owners were handed over to last
    LaunchRing* history = nullptr;  ///< of this thread's launches
};

inline constinit thread_local ThreadMemory thread_memory;

/// A number of the calling thread that no other thread gets, unlike std::thread::id, which the next thread may have.
inline std::uint64_t number_of_this_thread() noexcept {
    static constinit std::atomic<std::uint64_t> next{1};
    thread_local const std::uint64_t number = next.fetch_add(1, std::memory_order_relaxed);
    return number;
}

}  // namespace bascule
