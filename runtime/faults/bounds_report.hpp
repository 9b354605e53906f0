// What a kernel recorded when an index was out of bounds. It is in mapped host memory, so that it can be read
// when the context is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <bascule/jit/compile/image.hpp>
#include <bascule/runtime/driver/device.hpp>

namespace bascule {

/// bascule::the_bounds_hook, mangled: the variable of every image with a checked access.
inline constexpr const char* bounds_hook = "_ZN7bascule15the_bounds_hookE";

/// Whether the image's views check their bounds.
bool checks_bounds(const Image& image) noexcept;

/// Remembers the names of the image's parameters for reports; the number is the image's own. Bounded: the
/// oldest are forgotten. Thread-safe.
std::uint32_t remember_parameters(const Image& image);

/// Writes to the hook, at this address on `device`, where kernels of the image with this number write their
/// record. Throws: CudaError.
void place_bounds_record(std::uint64_t hook, std::size_t bytes, std::uint32_t number, Device device);

/// What kernels recorded: empty when there is no record.
struct BoundsReport {
    std::string text;    ///< the parameter and the line, then the index, on several lines
    std::string kernel;  ///< of the first record; empty where its name was forgotten
};
/// Calls no driver. Thread-safe.
BoundsReport bounds_report();

/// Empties the records, while no kernel runs.
void forget_bounds_reports() noexcept;

}  // namespace bascule
