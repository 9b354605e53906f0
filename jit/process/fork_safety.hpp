// Keeps the cache usable in a child process that was forked while another thread was inside it.
#pragma once

#include <cstdint>
#include <mutex>

namespace bascule {

/// Guards the small tables of the cache; held for a look-up, never over a compile or a file call. A fork
/// waits for it, so that the child finds it free and what it guards whole.
std::mutex& fork_safe_mutex();

/// How many forks lie between this process and the one that loaded us. Work that another
/// thread had begun before the last of them is never continued.
std::uint64_t fork_generation() noexcept;

}  // namespace bascule
