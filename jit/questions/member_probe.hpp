// Reads the members of a struct of the user's text in the order of declaration, so that a tuple can be converted to it.
#pragma once

#include <string>
#include <vector>

#include <bascule/interface/arguments/tuple_argument.hpp>
#include <bascule/jit/questions/probed_members.hpp>

namespace bascule {

/// The members of the struct `cpp_type` of the text, and of the member structs for which `like` has a tuple; `like`
/// also gives the number of members of each struct. For a class with `tuple_size`, such as cuda::std::array, these are
/// its elements.
///
/// Throws: ArgumentError (type, value) if the struct has another number of members, or members that a structured
/// binding cannot name (private ones, bit-fields, or some in the struct and others in a base); LibraryError.
std::vector<StructMember> read_members(const ProbedProgram& probed, const std::string& cpp_type,
                                       const TupleArgument& like);

}  // namespace bascule
