// Tuples for vector types, cuda::std::array and structs: the bytes that a kernel gets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <bascule/interface/arguments/argument_value.hpp>
#include <bascule/interface/arguments/signature.hpp>

namespace bascule {

/// One member of a struct, where the compiler put it. A value.
struct StructMember {
    std::uint32_t offset = 0;           ///< in the struct, in bytes
    bool is_empty = false;              ///< its class has no members: a tuple may leave it out
    ParameterType type;                 ///< of a pointer to the member, or to the elements of an array
    ParameterType pointer;              ///< of a member that is a pointer, or of such elements: its own type
    std::vector<std::int64_t> extents;  ///< of a C array; empty for a single element
    std::vector<StructMember> members;  ///< of an element that is a struct, in the order of declaration
};

/// The most numbers that a tuple can hold: a kernel's parameters have no more bytes.
inline constexpr std::size_t most_tuple_elements = 32764;

/// Writes a number for each lane of a vector type or element of a cuda::std::array.
/// Throws: ArgumentError (type, value, overflow) with the element and what it is declared as; the index is the
/// caller's to add. So does the other.
void write_lanes(const TupleArgument& tuple, const Parameter& parameter, std::byte* out);

/// Writes a value for each member of the struct that `parameter` declares: a number, an array or an address for a pointer,
/// or a tuple for an array or a struct. Members of empty classes take () or no value. Bytes between members are not written.
void write_members(const TupleArgument& tuple, std::span<const StructMember> members,
                   const Parameter& parameter, std::byte* out);

/// "4 numbers", "3 values" where some are tuples: how messages call a tuple.
std::string describe(const TupleArgument& tuple);

}  // namespace bascule
