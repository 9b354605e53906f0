// Structures as CUDA C++: the text of a struct whose members have exactly the offsets of a layout.
#pragma once

#include <bascule/interface/types/struct_layout.hpp>

namespace bascule {

/// The definition of `struct NAME` for this layout, after the #include lines it needs and the definitions of its nested
/// structures. Gaps are filled. The struct is packed if a field is not aligned as C++ requires. static_asserts repeat
/// all sizes and offsets.
///
/// The fields may come in any order. Throws: ArgumentError (value) that names the field, for fields that overlap or
/// leave the structure, names that C++ does not allow, empty arrays, and element types without a C++ type.
std::string struct_source(const StructLayout& layout, std::string_view name);

/// Whether the name has only letters, digits and underscores, and does not begin with a digit.
bool is_identifier(std::string_view name) noexcept;

}  // namespace bascule
