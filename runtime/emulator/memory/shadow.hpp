// Records for each bit of device memory whether something has written it, for the check of uninitialised values.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "memory/memory.hpp"

namespace emulated::memory {

/// One byte for each byte of a range of addresses; its bits are 1 where the memory's bits are undefined. Memory that was
/// allocated while the shadow is off is defined. Operations that access the same bytes unordered also race here;
/// otherwise thread-safe.
class Shadow {
  public:
    /// Covers the addresses [base, base + bytes).
    Shadow(DeviceAddress base, std::uint64_t bytes) noexcept : base_(base), bytes_(bytes) {}
    ~Shadow();
    Shadow(Shadow&&) = delete;

    /// Turning it off makes all memory defined. It stays off if there are not enough addresses.
    void turn(bool on) noexcept;

    /// Null if it is off.
    std::byte* bits() const noexcept { return bits_.load(std::memory_order_relaxed); }
    DeviceAddress base() const noexcept { return base_; }
    std::uint64_t bytes() const noexcept { return bytes_; }
    void define(DeviceAddress address, std::uint64_t bytes) const noexcept;
    void undefine(DeviceAddress address, std::uint64_t bytes) const noexcept;
    /// Makes the destination of a copy as defined as its source. Memory outside of the range is defined.
    void copy(DeviceAddress to, DeviceAddress from, std::uint64_t bytes) const noexcept;

  private:
    // Null if it is off or the range is not in it.
    std::byte* at(DeviceAddress address, std::uint64_t bytes) const noexcept {
        std::byte* const first = bits();
        const std::uint64_t offset = address - base_;
        return first == nullptr || offset >= bytes_ || bytes_ - offset < bytes ? nullptr : first + offset;
    }

    const DeviceAddress base_;
    const std::uint64_t bytes_;
    std::byte* pages_ = nullptr;  // mapped when it is turned on for the first time
    std::atomic<std::byte*> bits_{nullptr};
};

}  // namespace emulated::memory
