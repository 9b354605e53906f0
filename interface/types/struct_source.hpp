// Structures as CUDA C++: the text of a struct whose fields lie exactly where a layout has them.
#pragma once

#include <string>
#include <string_view>

#include <bascule/interface/types/struct_layout.hpp>

namespace bascule {

/// The definition of `struct NAME` for this layout, behind those of the structures inside it and the #include
/// lines it needs. Gaps are members of their own; fields that are not aligned as C++ would have them make the
/// struct a packed one; static_asserts repeat every size and offset.
///
/// The fields may come in any order. Throws: ArgumentError (value) that names the field, for fields that
/// overlap or leave the structure, names that C++ does not allow, empty arrays, and element types without a
/// C++ type.
std::string struct_source(const StructLayout& layout, std::string_view name);

/// Letters, digits and underscores, and no digit first.
bool is_identifier(std::string_view name) noexcept;

}  // namespace bascule
