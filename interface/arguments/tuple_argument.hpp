// Writes the bytes that a kernel gets for tuples that are passed as vector types, cuda::std::array and structs.
#pragma once

#include <bascule/interface/arguments/argument_value.hpp>

namespace bascule {

/// One member of a struct, with the offset that the compiler chose. A value type.
struct StructMember {
    std::uint32_t offset = 0;  ///< in the struct, in bytes
    bool is_empty = false;     ///< its class has no members: a tuple may omit it
    ParameterType type;        ///< the type of a pointer to the member, or to the elements of an array
    ParameterType pointer;     ///< the type of the member or its elements, if they are pointers
    std::vector<std::int64_t> extents;  ///< of a C array; empty for a single element
    std::vector<StructMember> members;  ///< of an element that is a struct, in the order of declaration
};

/// The limit on the numbers in a tuple: a kernel's parameters have no more bytes.
inline constexpr std::size_t most_tuple_elements = 32764;

/// Writes a number for each lane of a vector type or element of a cuda::std::array. Throws, as write_members does:
/// ArgumentError (type, value, overflow, not_supported) that names the element and its declared type. The caller adds
/// the argument's index.
void write_lanes(const TupleArgument& tuple, const Parameter& parameter, std::byte* out);

/// Writes a value for each member of the struct that `parameter` declares: a number, an array or an address for a
/// pointer, or a tuple for an array or a struct. Members of empty classes take () or no value. If the only member is an
/// array, the tuple may hold its elements directly. Does not write padding.
void write_members(const TupleArgument& tuple, std::span<const StructMember> members,
                   const Parameter& parameter, std::byte* out);

/// The tuple in messages: "4 numbers", or "3 values" if some are not numbers.
std::string describe(const TupleArgument& tuple);

}  // namespace bascule
