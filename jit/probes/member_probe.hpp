// The members of a struct of the user's text, in the order of declaration: what a tuple is written into.
#pragma once

#include <string>
#include <vector>

#include <bascule/interface/arguments/tuple_argument.hpp>
#include <bascule/jit/probes/probed_members.hpp>

namespace bascule {

/// The members of the struct that the text calls `cpp_type`, and of the structs among them for which `like` has a
/// tuple; `like` also says how many members each struct has. A class with `tuple_size`, such as cuda::std::array, has
/// its elements.
///
/// Throws: ArgumentError (type, value) where the struct has another number of members, or members that C++ does
/// not bind to names (private, bit-fields, in a base besides those of the struct); LibraryError.
std::vector<StructMember> read_members(const ProbedProgram& probed, const std::string& cpp_type,
                                       const TupleArgument& like);

}  // namespace bascule
