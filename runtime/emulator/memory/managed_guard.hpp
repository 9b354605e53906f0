// Managed memory on systems where host and kernels may not access it concurrently (Windows, WSL, old GPUs).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace emulated::memory {

/// Maps managed memory twice, for the host and for kernels, so that the host's mapping can be closed. An access by the host
/// is then a segmentation fault, as on such a system, and stderr explains it. There is one per process, because there is
/// one signal handler. Thread-safe.
class ManagedGuard {
  public:
    struct Mapping {
        std::byte* for_host = nullptr;  ///< null if there is no memory
        std::byte* for_kernels = nullptr;
    };

    ManagedGuard();  // installs the signal handler

    Mapping map(std::uint64_t bytes);
    void unmap(std::byte* for_host, std::byte* for_kernels, std::uint64_t bytes);

    void close() { protect(true); }
    void open() { protect(false); }
    bool closed() const noexcept { return closed_.load(std::memory_order_relaxed); }

    /// For the signal handler: takes no lock.
    bool contains(const void* address) const noexcept;

  private:
    struct Range {
        std::atomic<std::uintptr_t> first{0};  // 0 if unused
        std::atomic<std::size_t> bytes{0};
    };
    void protect(bool closed);

    std::mutex mutex_;  // serialises changes
    std::array<Range, 4096> ranges_;
    std::atomic<bool> closed_{false};
};

}  // namespace emulated::memory
