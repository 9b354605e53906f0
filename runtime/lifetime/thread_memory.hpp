// Data that a thread keeps between launches.
#pragma once

#include <atomic>
#include <cstdint>

namespace bascule {

struct LaunchRing;
struct OwnerQueue;

/// One object for all of it, because in a shared library each access to a thread-local object is a function call.
struct ThreadMemory {
    OwnerQueue* queue = nullptr;    ///< the queue that owners were last added to
    LaunchRing* history = nullptr;  ///< of this thread's launches
};

inline constinit thread_local ThreadMemory thread_memory;

/// A number that is unique to the calling thread. A std::thread::id may be reused by a later thread.
inline std::uint64_t number_of_this_thread() noexcept {
    static constinit std::atomic<std::uint64_t> next{1};
    thread_local const std::uint64_t number = next.fetch_add(1, std::memory_order_relaxed);
    return number;
}

}  // namespace bascule
