// Structures in arrays: the array interface's `descr` as a layout of named fields, and how two layouts differ.
#pragma once

#include <span>
#include <vector>

#include <bascule/interface/types/dtype.hpp>

namespace bascule {

struct StructField;

/// The named fields of a structure, with their offsets. Bytes that no field covers are padding. A value type.
struct StructLayout {
    std::uint32_t bytes = 0;
    std::vector<StructField> fields;  ///< for arrays: in the order of their offsets

    bool operator==(const StructLayout&) const = default;
};

/// One field: a number, opaque bytes, or a structure; or an array of them.
struct StructField {
    std::string name;
    std::uint32_t offset = 0;         ///< in the structure
    DType dtype;                      ///< of one element; opaque for a structure
    std::vector<std::int64_t> shape;  ///< empty for a single element
    std::vector<StructField> nested;  ///< the fields of one element that is a structure

    /// The size of the whole field.
    std::uint64_t bytes() const noexcept;
    bool operator==(const StructField&) const = default;
};

/// The kind of object that names the fields of a structure, for messages.
enum class LayoutSource : std::uint8_t { dtype, ctypes };

/// "dtype", "ctypes structure".
constexpr std::string_view to_string(LayoutSource source) noexcept {
    return source == LayoutSource::dtype ? "dtype" : "ctypes structure";
}

/// One entry of a producer's `descr`. An entry without a name is padding.
struct DescrEntry {
    std::string name;
    std::string typestr;             ///< empty for a nested structure
    std::vector<DescrEntry> nested;  ///< the nested structure's own entries
    std::vector<std::int64_t> shape;
};

/// The layout that a `descr` describes: its fields in sequence, with padding entries between. Has no fields if the
/// `descr` names none. Throws: ArgumentError (type for Python objects and strings; value for a total other than
/// `bytes`, for repeated names, negative extents and unknown types).
StructLayout parse_descr(std::span<const DescrEntry> descr, std::uint32_t bytes);

/// "{mass: float32 at 0, position: (3,) float32 at 4, 16 bytes}".
std::string to_string(const StructLayout& layout);

/// Whether the structure consists of `count` elements of `dtype` without gaps.
bool is_sequence_of(const StructLayout& layout, DType dtype, int count) noexcept;

/// The same fields one after the other. Unless `aligned`, they are packed without gaps, and nested structures keep
/// their layout. Otherwise fields and nested structures are placed as np.dtype(..., align=True) does.
StructLayout place_in_order(const StructLayout& layout, bool aligned);

/// Describes how the offsets and the size of `given` differ from those of the struct `cpp_type`, which has the same
/// fields in the same order and the layout `declared`. Names the fields and says what to do. Empty if all are equal.
std::string describe_difference(const StructLayout& given, const StructLayout& declared,
                                std::string_view cpp_type, LayoutSource source);

}  // namespace bascule
