// Records of out-of-bounds indices that kernels write. They are in mapped host memory, so that they can be read after
// the context is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <bascule/jit/program/program.hpp>
#include <bascule/runtime/driver/device.hpp>

namespace bascule {

/// The mangled name of bascule::the_bounds_hook, a variable in every image with a checked access.
inline constexpr const char* bounds_hook = "_ZN7bascule15the_bounds_hookE";

/// Whether the image's views check bounds.
bool checks_bounds(const Image& image) noexcept;

/// Remembers the names of the image's parameters for reports, and returns a number that identifies the image. Forgets
/// the oldest images beyond a limit. Thread-safe.
std::uint32_t remember_parameters(const Image& image);

/// Writes the address of the device's record, and the image's number, to the hook at this address on `device`. Throws:
/// CudaError.
void place_bounds_record(std::uint64_t hook, std::size_t bytes, std::uint32_t number, Device device);

/// The kernels' records as text; empty strings without a record.
struct BoundsReport {
    std::string text;    ///< several lines: the parameter and the line, then the index
    std::string kernel;  ///< of the first record; empty if its name was forgotten
};
/// Does not call the driver. Thread-safe.
BoundsReport bounds_report();

/// Clears the records. No kernel may be running.
void forget_bounds_reports() noexcept;

}  // namespace bascule
