// Managed memory where host and kernels may not use it at the same time (Windows, WSL, old GPUs).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace emulated::memory {

/// Allocations that the host finds at one mapping and kernels at another, so that the host's can be closed. An
/// access by the host then is a fault of the process, as on such a machine, and stderr says why. One for the process:
/// there is one handler for faults. Thread-safe.
class ManagedGuard {
  public:
    struct Mapping {
        std::byte* for_host = nullptr;  ///< null when there is no memory
        std::byte* for_kernels = nullptr;
    };

    ManagedGuard();  // installs the handler

    Mapping map(std::uint64_t bytes);
    void unmap(std::byte* for_host, std::byte* for_kernels, std::uint64_t bytes);

    void close() { protect(true); }
    void open() { protect(false); }
    bool closed() const noexcept { return closed_.load(std::memory_order_relaxed); }

    /// For the handler: takes no lock.
    bool contains(const void* address) const noexcept;

  private:
    struct Range {
        std::atomic<std::uintptr_t> first{0};  // 0: unused
        std::atomic<std::size_t> bytes{0};
    };
    void protect(bool closed);

    std::mutex mutex_;  // of changes
    std::array<Range, 4096> ranges_;
    std::atomic<bool> closed_{false};
};

}  // namespace emulated::memory
