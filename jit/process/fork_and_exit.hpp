// Forks and the end of the process. A child that is forked while another thread of its parent compiles finds NVRTC's
// locks taken; the cache stays usable in it. A thread that still compiles at exit would find the library's static objects
// destroyed.
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

/// Make one on the stack around work that must finish before the process ends. Exit waits for those that exist; another
/// thread that makes one later stops there forever.
class BeforeTheEnd {
  public:
    BeforeTheEnd() noexcept;
    ~BeforeTheEnd();
    BeforeTheEnd(BeforeTheEnd&&) = delete;
};

/// The same around calls of NVRTC. Throws: LibraryError in a child that was forked while another thread was in NVRTC,
/// because it would wait forever for a lock.
class InsideNvrtc {
  public:
    InsideNvrtc();
    ~InsideNvrtc();
    InsideNvrtc(InsideNvrtc&&) = delete;

  private:
    BeforeTheEnd before_the_end_;
};

/// Call this after loading libraries: registers close_gate to run at exit. Exit handlers run in reverse order, so the
/// gate closes before these libraries are destroyed.
void close_gate_at_exit() noexcept;

/// Closes the gate now. Call this when the process is about to end, because static objects that a compile makes after
/// the last close_gate_at_exit would be destroyed before the gate closes. The calling thread can still compile.
void close_gate() noexcept;

/// True once the gate is closed: compiles stop in all threads except the one that closed it.
bool gate_is_closed() noexcept;

}  // namespace bascule
