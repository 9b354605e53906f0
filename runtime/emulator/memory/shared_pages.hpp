// Pages of device memory that other processes map: they lie in a file without a name, whose offsets are those of the window.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>

namespace emulated::memory {

/// Where an allocation lies for other processes.
struct SharedPlace {
    int file = -1;             ///< a descriptor of the process that has the memory
    std::uint64_t offset = 0;  ///< bytes
    std::uint64_t bytes = 0;
    std::uint64_t serial = 0;  ///< of the allocation: what is allocated there later has another
};

/// Memory is ordinary until it is shared, so that memory which nobody shares costs nothing. Not thread-safe.
class SharedPages {
  public:
    SharedPages() = default;
    ~SharedPages();
    SharedPages(const SharedPages&) = delete;
    SharedPages& operator=(const SharedPages&) = delete;

    /// -1 before anything is shared.
    int file() const noexcept { return file_; }
    /// Moves the pages of an allocation into the file. They stay where they are in this process, and nothing may write to them
    /// meanwhile. `window` is the first byte of all, of which there are `window_bytes`. False where there is no file, or no
    /// memory; then everything is as before.
    bool share(std::byte* window, std::uint64_t window_bytes, std::uint64_t offset, std::uint64_t bytes);
    /// The allocation is freed: pages that it has alone are ordinary memory again, and zeros to whoever still maps them.
    void end_sharing(std::byte* window, std::uint64_t offset, std::uint64_t bytes) noexcept;

    /// Maps whole pages of another process's file. False where they cannot be mapped.
    static bool map(int file, std::uint64_t offset, std::byte* at, std::uint64_t bytes) noexcept;
    /// Makes whole pages ordinary memory again.
    static bool unmap(std::byte* at, std::uint64_t bytes) noexcept;

  private:
    int file_ = -1;
    std::set<std::uint64_t> shared_;  // offsets of allocations
};

}  // namespace emulated::memory
