// Determines the device that an array's memory belongs to, which decides the device of a launch.
#pragma once

#include <array>
#include <limits>
#include <utility>

#include <bascule/interface/arrays/array_interface.hpp>
#include <bascule/runtime/driver/device.hpp>

namespace bascule {

/// Returns the array as kernels on `device` can use it: a host address of pinned memory becomes its device address.
/// Queries the driver unless the address is known (`is_known_at_home`) or the array is empty. Accepts host memory that
/// the driver does not know if the device has pageable memory access and the process has mapped the memory. Throws:
/// ArgumentError, with advice, for memory that the device does not know, or that belongs to another device or to a
/// context that is not a primary one.
ArrayView resolve(const ArrayView& array, Device device);

/// The address of the first byte that a non-empty array touches, and the address after its last byte.
std::pair<std::uint64_t, std::uint64_t> bytes_of(const ArrayView& array) noexcept;

/// Advice for messages about a context that is not a primary one.
inline constexpr const char* primary_context_advice =
    "Use the device's primary context, as Bascule, CuPy, PyTorch, Numba and JAX do: with PyCUDA `import "
    "pycuda.autoprimaryctx` in place of `pycuda.autoinit`.";

/// Used as a device ordinal if the producer names no device.
inline constexpr int no_device_named = std::numeric_limits<int>::min();

/// The device of a launch, as far as the arguments read so far determine it.
struct Home {
    Device device;
    bool decided = false;  ///< by a stream, or by an array that belongs to one device only
    bool by_stream = false;
    bool peer = false;  ///< accept arrays of other devices and enable access of `device` to their memory
};

/// Like `resolve(array, home.device)`, but in place. While the device is undecided, memory of another device decides
/// it. `told` is as in `is_known_at_home`. Sets `array.stream.device` if the array's stream is on another device.
void resolve_at_home(ArrayView& array, Home& home, int told = no_device_named);

/// Advice for messages about an array on another device than `home`.
std::string advice_for_elsewhere(Device home);

namespace detail {

/// A cache of addresses: a query of the driver has shown that kernels can use the memory there at this same address.
/// Direct-mapped. Device memory is kept in blocks of 2 MiB, in which drivers allocate it; pinned and managed memory as
/// single addresses. Lock-free: an entry is one word.
///
/// Frees by Bascule remove entries; frees by other libraries cannot be seen. A stale entry is therefore used only if it
/// does no harm: with one device, whose kernels reach everything that a driver maps at such an address, or if the
/// producer names the device (DLPack).
class ProvenMemory {
  public:
    bool contains(std::uint64_t address, int ordinal) const noexcept {
        return blocks_[slot_of(address >> shift)].load(std::memory_order_acquire) == word(address, ordinal);
    }
    bool contains_of_host(std::uint64_t address) const noexcept {
        return of_host_[slot_of(address)].load(std::memory_order_acquire) == address;
    }

    std::uint64_t generation() const noexcept { return generation_.load(); }

    /// `asked_at` is the generation before the query of the driver. If memory has been freed since, the result may be
    /// outdated and is not kept.
    void insert(std::uint64_t address, int ordinal, std::uint64_t asked_at) noexcept;
    void insert_of_host(std::uint64_t address, std::uint64_t asked_at) noexcept;
    void forget(std::uint64_t address, std::uint64_t bytes) noexcept;

  private:
    static constexpr int shift = 21;
    static constexpr int size_bits = 10;
    using Entries = std::array<std::atomic<std::uint64_t>, std::size_t{1} << size_bits>;

    static std::uint64_t word(std::uint64_t address, int ordinal) noexcept {
        return (address >> shift) << 8 | (static_cast<std::uint64_t>(ordinal) + 1);
    }
    /// Fibonacci hashing: allocators' addresses have a stride, which a remainder would map to few slots.
    static std::size_t slot_of(std::uint64_t key) noexcept {
        return key * 0x9E3779B97F4A7C15ULL >> (64 - size_bits);
    }
    void store(std::atomic<std::uint64_t>& slot, std::uint64_t value, std::uint64_t asked_at) noexcept;

    Entries blocks_{};
    Entries of_host_{};
    std::atomic<std::uint64_t> generation_{0};
    // The range of all host addresses ever inserted. Frees of device memory outside of it need no search.
    std::atomic<std::uint64_t> first_of_host_{~std::uint64_t{0}};
    std::atomic<std::uint64_t> last_of_host_{0};
};

inline ProvenMemory proven_memory;
/// Either flag restricts the use of the cache.
inline std::atomic<bool> asks_always{false};     // check_memory
inline std::atomic<bool> several_devices{true};  // more than one device; set by resolve_at_home

}  // namespace detail

/// True if there are several devices, and until the driver has been asked about the first array.
inline bool several_devices() noexcept { return detail::several_devices.load(std::memory_order_relaxed); }

/// True if a non-empty array is known to be on `home.device`, which is then decided, or in host memory that its kernels
/// reach. Makes no query. `told` is the device that the producer names, or `no_device_named`.
inline bool is_known_at_home(std::uint64_t pointer, Home& home, int told = no_device_named) noexcept {
    const int ordinal = home.device.ordinal();
    if (detail::asks_always.load(std::memory_order_relaxed)) return false;
    const bool one_device = !several_devices();
    if (told == no_device_named ? !one_device : told != ordinal) return false;
    if (!detail::proven_memory.contains(pointer, ordinal)) {
        return one_device && detail::proven_memory.contains_of_host(pointer);
    }
    home.decided = true;
    return true;
}

/// Returns "the launch goes to device 0, where its stream is" for messages.
std::string describe(const Home& home);

/// Makes `resolve` query the driver about every array each time, and refuse arrays that extend beyond their allocation.
/// For finding freed pointers and wrong extents. Off by default; applies to the whole process.
void check_memory(bool on) noexcept;

/// Removes these addresses from the cache. Called when memory is freed.
void forget_pointer(std::uint64_t address, std::uint64_t bytes) noexcept;

/// True if the process may read the byte at `address`. Asks the operating system, so a wrong address causes no fault.
/// Another thread may unmap it right afterwards.
bool is_readable(std::uint64_t address) noexcept;

}  // namespace bascule
