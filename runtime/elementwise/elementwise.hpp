// Copies, conversions and fills of device arrays of any strides, in stream order.
#pragma once

#include <cstddef>
#include <span>

#include <bascule/interface/arrays/array_interface.hpp>
#include <bascule/runtime/streams/owner.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

// Kernels cannot write to constant memory: they write to a copy, which the driver copies back.

/// Whether `convert_elements` supports it: numbers and bools; complex numbers to complex ones and bool only.
bool can_convert(DType from, DType to) noexcept;

/// The elements of `source` to `destination`: one shape, one item size, whatever they are made of; the two do
/// not overlap. Ordered as a launch is: on `stream`, after the streams that the arrays name, which wait in
/// turn. Owners are kept until it is done. What is not contiguous is copied by a kernel, which is compiled
/// once. Throws: CudaError; CompileError and LibraryError when the compiler is missing.
void copy_elements(StreamRef stream, const ArrayView& destination, const ArrayView& source,
                   const Owners& owners = {});

/// The same with each element converted as a C cast does: floats are truncated, integers wrap, nonzero
/// is true. Floats that do not fit an integer type give an unspecified number. `can_convert` holds.
void convert_elements(StreamRef stream, const ArrayView& destination, const ArrayView& source,
                      const Owners& owners = {});

/// Every element becomes `element`, which has an element's bytes: at most `largest_fill`. Ordered, kept and
/// thrown as above.
inline constexpr std::size_t largest_fill = 16;
void fill_elements(StreamRef stream, const ArrayView& destination, std::span<const std::byte> element,
                   const Owners& owners = {});

}  // namespace bascule
