// What differs between the places of a structure's fields in a dtype and in a C++ struct, and what to change.
#pragma once

#include <string>
#include <string_view>

#include <bascule/interface/types/struct_layout.hpp>

namespace bascule {

/// The same fields one after the other: without gaps where they are packed, structures inside as they are; else as
/// np.dtype(..., align=True) and a C++ compiler place them, structures inside too.
StructLayout place_in_order(const StructLayout& layout, bool aligned);

/// How the places and the size of `given` differ from those of the struct `cpp_type`, which `declared` has for the
/// same fields in the same order; a sentence for each field, and one that says what to do. Empty where nothing
/// differs.
std::string describe_difference(const StructLayout& given, const StructLayout& declared,
                                std::string_view cpp_type, LayoutSource source);

}  // namespace bascule
