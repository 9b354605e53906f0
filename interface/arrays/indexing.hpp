// Basic indexing of arrays as NumPy does it: integers, slices, an ellipsis and new axes make a view.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

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

}  // namespace bascule
