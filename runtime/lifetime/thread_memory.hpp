// What a thread remembers from one launch to the next.
#pragma once

namespace bascule {

struct LaunchRing;
struct OwnerQueue;

/// All of it in one object: in a shared library, finding a thread-local object is a call.
struct ThreadMemory {
    OwnerQueue* queue = nullptr;    ///< that owners were handed over to last
    LaunchRing* history = nullptr;  ///< of this thread's launches
};

inline constinit thread_local ThreadMemory thread_memory;

}  // namespace bascule
