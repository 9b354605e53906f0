// Whose memory an array is, and so which device a launch goes to.
#pragma once

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

/// Whether an array that is not empty is known to lie on `home.device`, which is the home then. Asks nobody.
bool is_known_at_home(std::uint64_t pointer, Home& home) noexcept;

/// "the launch goes to device 0, where its stream is": for messages.
std::string describe(const Home& home);

/// Whether `resolve` asks the driver about every array each time, and refuses those that reach beyond their
/// allocation: for finding freed pointers and wrong extents. Off at first; counts for the whole process.
void check_memory(bool on) noexcept;

/// Forgets what `resolve` remembers of these addresses. Called when memory is freed.
void forget_pointer(std::uint64_t address, std::uint64_t bytes) noexcept;

}  // namespace bascule
