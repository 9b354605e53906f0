// Views of the same memory by NumPy's rules: basic indexing (integers, slices, an ellipsis and new axes), other shapes,
// other orders of the axes, and another element type.
#pragma once

#include <span>
#include <vector>

#include <bascule/interface/arrays/array_interface.hpp>

namespace bascule {

/// One entry of an index: `x[3]`, `x[1:10:2]`, `x[...]`, `x[None]`. A value type.
struct IndexEntry {
    enum class Kind : std::uint8_t { integer, slice, ellipsis, new_axis };
    Kind kind = Kind::integer;
    std::int64_t integer = 0;           ///< Kind::integer; negative counts from the end
    std::optional<std::int64_t> start;  ///< Kind::slice, as the members below
    std::optional<std::int64_t> stop;
    std::int64_t step = 1;  ///< never 0
};

/// The elements that `index` names, in the same memory. Axes that it does not mention stay whole; an integer
/// for every axis leaves a view of no dimensions. Throws: ArgumentError (index) in NumPy's words.
ArrayView index_array(const ArrayView& array, std::span<const IndexEntry> index);

/// The named field of each structure, as a view of the same memory; a field that is an array adds its axes. Throws:
/// ArgumentError (index if the elements have no named fields or the view would have more than 64 axes; value if no
/// field has this name).
ArrayView field_of(const ArrayView& array, const std::string& name);

/// The elements in C order in another shape; one extent may be -1. Throws: ArgumentError (value) when the
/// elements do not fit, and when no strides give that shape without a copy.
ArrayView reshape(const ArrayView& array, const Dimensions& shape);

/// Axis `d` of the result is axis `axes[d]` of the array; negative ones count from the end. Throws:
/// ArgumentError (value) unless `axes` names each axis once.
ArrayView transpose(const ArrayView& array, std::span<const std::int64_t> axes);
/// Reverses the order of the axes.
ArrayView transpose(const ArrayView& array);

/// The array repeated along axes of extent 1 and along leading axes that it lacks, by strides of 0; leading axes of
/// extent 1 that `shape` lacks are dropped. Throws: ArgumentError (value) when the shapes do not fit.
ArrayView broadcast_to(const ArrayView& array, const Dimensions& shape);

/// The axes in descending order of their strides: `transpose` with them puts the elements in memory order, and is
/// C-contiguous if the array is dense.
std::vector<std::int64_t> axes_in_memory_order(const ArrayView& array);
/// Whether the elements fill a block of memory without gaps for some order of the axes, with no axis reversed.
bool is_dense(const ArrayView& array);

/// The same bytes as elements of another type, by NumPy's rules: with another item size the last axis must be
/// contiguous, and its length changes. Throws: ArgumentError (value).
ArrayView view_as(const ArrayView& array, DType dtype, std::shared_ptr<const StructLayout> layout);

}  // namespace bascule
