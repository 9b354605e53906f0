// Device memory that other processes map: pages of an unnamed file whose offsets are those of the window.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>

namespace emulated::memory {

/// The location of an allocation for other processes.
struct SharedPlace {
    int file = -1;             ///< a descriptor of the process that owns the memory
    std::uint64_t offset = 0;  ///< bytes
    std::uint64_t bytes = 0;
    std::uint64_t serial = 0;  ///< of the allocation; a later one in the same place has another
};

/// Memory is moved into the file only when it is shared, so that other memory costs nothing. Not thread-safe.
class SharedPages {
  public:
    SharedPages() = default;
    ~SharedPages();
    SharedPages(SharedPages&&) = delete;

    /// -1 before anything is shared.
    int file() const noexcept { return file_; }
    /// Moves the pages of an allocation into the file, at the same addresses. Nothing may write to them meanwhile. `window`
    /// is the first byte of the whole window, which has `window_bytes`. Returns false without a change if there is no file
    /// or no memory.
    bool share(std::byte* window, std::uint64_t window_bytes, std::uint64_t offset, std::uint64_t bytes);
    /// Called when the allocation is freed. Pages that contain nothing else become ordinary memory again;
    /// processes that still map them read zeros.
    void end_sharing(std::byte* window, std::uint64_t offset, std::uint64_t bytes) noexcept;

    /// Maps whole pages of another process's file. Returns false on failure.
    static bool map(int file, std::uint64_t offset, std::byte* at, std::uint64_t bytes) noexcept;
    /// Replaces whole pages by ordinary memory.
    static bool unmap(std::byte* at, std::uint64_t bytes) noexcept;

  private:
    int file_ = -1;
    std::set<std::uint64_t> shared_;  // offsets of shared allocations
};

}  // namespace emulated::memory
