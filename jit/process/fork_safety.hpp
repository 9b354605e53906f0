// Keeps the cache usable in a child that was forked while another thread of the parent was using it.
#pragma once

#include <cstdint>
#include <mutex>

namespace bascule {

/// Guards the small tables of the cache; held for look-ups, never during a compile or a file call. A fork waits for it,
/// so that the child finds it free and the tables complete.
std::mutex& fork_safe_mutex();

/// The number of forks between this process and the one that first called fork_safe_mutex. Work that another thread
/// began before the last fork never continues.
std::uint64_t fork_generation() noexcept;

}  // namespace bascule
