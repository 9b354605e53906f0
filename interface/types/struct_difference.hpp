// Describes how the field offsets of a dtype differ from those of a C++ struct, and what to change.
#pragma once

#include <string>
#include <string_view>

#include <bascule/interface/types/struct_layout.hpp>

namespace bascule {

/// The same fields one after the other. Unless `aligned`, they are packed without gaps, and nested structures keep
/// their layout. Otherwise fields and nested structures are placed as np.dtype(..., align=True) does.
StructLayout place_in_order(const StructLayout& layout, bool aligned);

/// Describes how the offsets and the size of `given` differ from those of the struct `cpp_type`, which has the same
/// fields in the same order and the layout `declared`. Names the fields and says what to do. Empty if all are equal.
std::string describe_difference(const StructLayout& given, const StructLayout& declared,
                                std::string_view cpp_type, LayoutSource source);

}  // namespace bascule
