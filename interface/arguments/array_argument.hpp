// Arrays for pointers, views and spans: which fit, and the bytes that a kernel gets for them. Used by the
// argument pack and by the choice between overloads.
#pragma once

#include <cstddef>
#include <string>

#include <bascule/interface/arguments/signature.hpp>
#include <bascule/interface/arrays/array_interface.hpp>

namespace bascule {

/// Whether elements of this dtype may be read and written through what is declared. For vector types the
/// dtype is a lane's.
bool accepts(const ParameterType& declared, DType dtype) noexcept;

/// Whether the array's elements are what is declared: by dtype, by a last axis of lanes, by a complex
/// number's or a structure's parts. A structure's fields are not compared: only the compiler knows them.
bool accepts(const ParameterType& declared, const ArrayView& array) noexcept;

/// Whether the array is what most are: numbers of exactly the declared type, C-contiguous, aligned, of memory
/// that may be used as declared. Then the kernel gets its address and nothing else need be asked. Whatever this is
/// false for is write_array's to take or to refuse.
[[gnu::always_inline]] inline bool fits_plainly(const ArrayView& array, const Parameter& parameter) noexcept {
    const ParameterType& type = parameter.type;
    return parameter.plain && type.kind == ParameterType::Kind::pointer && array.dtype == type.dtype &&
           array.c_contiguous && (type.constant || array.writable_by_kernels()) &&
           (array.pointer & (type.alignment - 1)) == 0 && array.mask == nullptr && array.layout == nullptr;
}

/// Checks the array against a pointer, view or span parameter and writes what the kernel gets.
/// Throws: ArgumentError (type, value, not_supported) that names both sides; the index is the caller's to
/// add.
void write_array(const ArrayView& array, const Parameter& parameter, std::byte* out);

}  // namespace bascule
