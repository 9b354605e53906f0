// Whose memory an array is, and so which device a launch goes to.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include <bascule/interface/arrays/array_interface.hpp>
#include <bascule/runtime/driver/device.hpp>

namespace bascule {

/// The array as a kernel on `device` can use it: a host address of pinned memory becomes its device address.
/// Asks the driver, unless the answer is known (`is_known_at_home`); empty arrays are not asked about. Host
/// memory that the driver does not know is taken where kernels reach all of it (pageable access) and this
/// process has it mapped. Throws: ArgumentError for memory that the device does not know, or that belongs to
/// another device or to a context that is not a primary one, with what to do.
ArrayView resolve(const ArrayView& array, Device device);

/// The first byte that an array with elements touches, and the one behind its last.
std::pair<std::uint64_t, std::uint64_t> bytes_of(const ArrayView& array) noexcept;

/// What to do about a context that is not a primary one: for messages.
inline constexpr const char* primary_context_advice =
    "Use the device's primary context, as Bascule, CuPy, PyTorch, Numba and JAX do: with PyCUDA `import "
    "pycuda.autoprimaryctx` in place of `pycuda.autoinit`.";

/// In place of a device's number.
inline constexpr int not_told = std::numeric_limits<int>::min();

/// Where a launch goes, as far as its arguments have been read.
struct Home {
    Device device;
    bool decided = false;  ///< by a stream, or by an array that lies on one device alone
    bool by_stream = false;
    bool peer = false;  ///< arrays of other devices are taken, and their memory is opened to `device`
};

/// As `resolve(array, home.device)`, in place, while the device may still be undecided: then memory of another
/// device makes that one the home. `told` as for `is_known_at_home`. `array.device` is set where the array's
/// stream is on another device.
void resolve_at_home(ArrayView& array, Home& home, int told = not_told);

/// What to do with an array that lies on another device than `home`: for messages.
std::string advice_for_elsewhere(Device home);

namespace detail {

/// Memory that was proven to be usable by kernels at its own address, direct-mapped: 2 MiB blocks of device
/// memory, which is handed out in such blocks, so that one answer serves the whole block; and single addresses
/// of pinned and managed memory. Lock-free: an entry is one word.
///
/// Our own frees are noticed, other libraries' are not. What a freed block is next is therefore trusted only
/// where it cannot matter: on a machine with one device, whose kernels reach everything that a driver puts at such an address,
/// and where the producer names the device itself (DLPack).
class ProvenMemory {
  public:
    bool contains(std::uint64_t address, int ordinal) const noexcept {
        return blocks_[slot_of(address >> shift)].load(std::memory_order_acquire) == word(address, ordinal);
    }
    bool contains_of_host(std::uint64_t address) const noexcept {
        return of_host_[slot_of(address)].load(std::memory_order_acquire) == address;
    }

    std::uint64_t generation() const noexcept { return generation_.load(); }

    /// `asked_at` is the generation before the driver was asked: when memory was freed since, the answer may
    /// be about memory that is gone.
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
    // What addresses of host memory were ever inserted: frees of device memory need not look for them.
    std::atomic<std::uint64_t> first_of_host_{~std::uint64_t{0}};
    std::atomic<std::uint64_t> last_of_host_{0};
};

inline ProvenMemory proven_memory;
/// Why answers are not trusted. Both are set before the first array is read, or between launches.
inline std::atomic<bool> asks_always{false};     // check_memory
inline std::atomic<bool> several_devices{true};  // the driver's devices, once there is a driver

}  // namespace detail

/// True also while no driver is loaded.
inline bool several_devices() noexcept { return detail::several_devices.load(std::memory_order_relaxed); }

/// Whether an array that is not empty is known to lie on `home.device`, which is the home then, or anywhere
/// where its kernels reach it. Makes no query. `told` is the device that the producer names; `not_told` where it names none.
inline bool is_known_at_home(std::uint64_t pointer, Home& home, int told = not_told) noexcept {
    const int ordinal = home.device.ordinal();
    if (detail::asks_always.load(std::memory_order_relaxed)) return false;
    const bool one_device = !several_devices();
    if (told == not_told ? !one_device : told != ordinal) return false;
    if (!detail::proven_memory.contains(pointer, ordinal)) {
        return one_device && detail::proven_memory.contains_of_host(pointer);
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
