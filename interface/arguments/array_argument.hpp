// Arrays for pointers, views and spans: which fit, and the bytes that a kernel gets for them. Used by the
// argument pack and by the choice between overloads.
#pragma once

#include <cstddef>

#include <bascule/interface/arguments/signature.hpp>
#include <bascule/interface/arrays/array_interface.hpp>

namespace bascule {

/// Whether elements of this dtype may be read and written through what is declared. For vector types the
/// dtype is a lane's.
bool accepts(const ParameterType& declared, DType dtype) noexcept;

/// Whether the array's elements are what is declared: by dtype, by a last axis of lanes, by a complex
/// number's or a structure's parts. A structure's fields are not compared: only the compiler knows them.
bool accepts(const ParameterType& declared, const ArrayView& array) noexcept;

/// Checks the array against a pointer, view or span parameter and writes what the kernel gets.
/// Throws: ArgumentError (type, value, not_supported) that names both sides; the index is the caller's to
/// add.
void write_array(const ArrayView& array, const Parameter& parameter, std::byte* out);

}  // namespace bascule
