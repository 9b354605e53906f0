// Stream-ordered copies, conversions and fills of device arrays with any strides.
#pragma once

#include <cstddef>
#include <span>

#include <bascule/interface/arrays/array_interface.hpp>
#include <bascule/runtime/streams/owner.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

// These functions can also write to constant memory, which kernels cannot: a kernel writes to a copy of the
// destination, which the driver then copies to the constant memory.

/// Whether `convert_elements` supports this conversion: between numbers and bools; from complex numbers only to complex
/// numbers and bool.
bool can_convert(DType from, DType to) noexcept;

/// Copies the elements of `source` to `destination`. Both have the same shape and item size, with any element type, and
/// do not overlap. Ordered like a launch: on `stream`, after the streams that the arrays name, which then wait for the
/// copy. Owners are kept until it is done. Arrays that are not contiguous are copied by a kernel, which is compiled
/// once. Throws: CudaError; CompileError and LibraryError if the compiler is missing.
void copy_elements(StreamRef stream, const ArrayView& destination, const ArrayView& source,
                   const Owners& owners = {});

/// The same, but converts each element like a C cast: floats are truncated, integers wrap, nonzero becomes true. Floats
/// outside an integer type's range give unspecified numbers. `can_convert` must be true.
void convert_elements(StreamRef stream, const ArrayView& destination, const ArrayView& source,
                      const Owners& owners = {});

/// Sets every element to `element`, the bytes of one element, at most `largest_fill`. Order, owners and errors as above.
inline constexpr std::size_t largest_fill = 16;
void fill_elements(StreamRef stream, const ArrayView& destination, std::span<const std::byte> element,
                   const Owners& owners = {});

}  // namespace bascule
