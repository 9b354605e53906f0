// What a kernel wrote down when an index left its view. It is in mapped host memory, so that it can be read
// when the context is lost.
#pragma once

#include <cstdint>
#include <string>

#include <bascule/jit/compile/image.hpp>
#include <bascule/runtime/driver/device.hpp>

namespace bascule {

class Library;

/// Whether the image's views check their bounds.
bool checks_bounds(const Image& image) noexcept;

/// Remembers the names of the image's parameters for reports; the number is the image's own. Bounded: the
/// oldest are forgotten. Thread-safe.
std::uint32_t remember_parameters(const Image& image);

/// Tells the code of `library`, whose image checks bounds and has that number, where to write on `device`.
/// Throws: CudaError.
void place_bounds_record(const Library& library, std::uint32_t number, Device device);

/// The index, the parameter and the line that a kernel wrote down, on several lines; empty when none did.
/// Asks no driver. Thread-safe.
std::string bounds_report();

}  // namespace bascule
