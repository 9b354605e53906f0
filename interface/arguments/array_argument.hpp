// Array arguments for pointers, views and spans: which arrays fit, and the bytes that a kernel gets for them. Used by
// the argument pack, for pointers in tuples, and for the choice among overloads.
#pragma once

#include <cstddef>

#include <bascule/interface/arguments/signature.hpp>
#include <bascule/interface/arrays/array_interface.hpp>

namespace bascule {

/// Whether a kernel may access elements of this dtype by the declared type. For vector types it is the dtype of
/// one lane.
bool accepts(const ParameterType& declared, DType dtype) noexcept;

/// Whether the array's elements are of the declared type. If the declared element has several lanes, the last axes
/// of the array, a complex number or a structure may stand for them. Does not compare a structure's fields, which only
/// the compiler knows.
bool accepts(const ParameterType& declared, const ArrayView& array) noexcept;

/// Checks the array against a pointer, view or span parameter and writes the parameter's bytes. Throws: ArgumentError
/// (type, value, overflow, not_supported) that names both sides; the caller adds the argument's index.
void write_array(const ArrayView& array, const Parameter& parameter, std::byte* out);

}  // namespace bascule
