// Whose memory an array is, and so which device a launch goes to.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include <bascule/interface/arrays/array_interface.hpp>
#include <bascule/runtime/driver/device.hpp>

namespace bascule {

/// The array as a kernel on `device` can use it: a host address of pinned memory becomes its device address.
/// Asks the driver once for a 2 MiB block of proven device memory, each time otherwise; empty arrays are not
/// asked about. Throws: ArgumentError for memory that the device does not know or that belongs to another
/// device, with what to do.
ArrayView resolve(const ArrayView& array, Device device);

/// Where a launch goes, as far as its arguments have been read.
struct Home {
    Device device;
    bool decided = false;  ///< by a stream, or by an array that lies on one device alone
    bool by_stream = false;
    bool peer = false;  ///< arrays of other devices are taken, and their memory is opened to `device`
};

/// As `resolve(array, home.device)`, in place, while the device may still be undecided: then memory of another
/// device makes that one the home. `array.device` is set where the array's stream is on another device.
void resolve_at_home(ArrayView& array, Home& home);

namespace detail {

/// 2 MiB blocks that were proven to be device memory, direct-mapped. Device memory is handed out in such
/// blocks, so one answer serves the whole block. Lock-free: an entry is one word.
class ProvenBlocks {
  public:
    bool contains(std::uint64_t address, int ordinal) const noexcept {
        return entry(address).load(std::memory_order_acquire) == word(address, ordinal);
    }

    std::uint64_t generation() const noexcept { return generation_.load(); }

    /// `asked_at` is the generation before the driver was asked: when memory was freed since, the answer may
    /// be about memory that is gone.
    void insert(std::uint64_t address, int ordinal, std::uint64_t asked_at) noexcept;
    void forget(std::uint64_t address, std::uint64_t bytes) noexcept;

  private:
    static constexpr int shift = 21;
    static constexpr std::uint64_t size = 1024;

    static std::uint64_t word(std::uint64_t address, int ordinal) noexcept {
        return (address >> shift) << 8 | (static_cast<std::uint64_t>(ordinal) + 1);
    }
    std::atomic<std::uint64_t>& entry(std::uint64_t address) const noexcept {
        return entries_[(address >> shift) % size];
    }

    mutable std::array<std::atomic<std::uint64_t>, size> entries_{};
    std::atomic<std::uint64_t> generation_{0};
};

inline ProvenBlocks proven_blocks;
inline std::atomic<bool> asks_always{false};  // check_memory

}  // namespace detail

/// Whether an array that is not empty is known to lie on `home.device`, which is the home then. Asks nobody.
inline bool is_known_at_home(std::uint64_t pointer, Home& home) noexcept {
    if (detail::asks_always.load(std::memory_order_relaxed) ||
        !detail::proven_blocks.contains(pointer, home.device.ordinal())) {
        return false;
    }
    home.decided = true;
    return true;
}

/// "the launch goes to device 0, where its stream is": for messages.
std::string describe(const Home& home);

/// Whether `resolve` asks the driver about every array each time, and refuses those that reach beyond their
/// allocation: for finding freed pointers and wrong extents. Off at first; counts for the whole process.
void check_memory(bool on) noexcept;

/// Forgets what `resolve` remembers of these addresses. Called when memory is freed.
void forget_pointer(std::uint64_t address, std::uint64_t bytes) noexcept;

}  // namespace bascule
