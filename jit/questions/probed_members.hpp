// Reads the members of structs of the user's text from a compile of the text with a probe appended.
#pragma once

#include <bascule/interface/arguments/tuple_argument.hpp>
#include <bascule/interface/errors/wording.hpp>
#include <bascule/jit/questions/probed_program.hpp>

namespace bascule {

/// The expressions for one member of the object `probed_object`.
struct MemberExpression {
    std::string address;
    std::string type;
    std::size_t axes = 0;  ///< the most extents of a C array to report
};
inline constexpr const char* probed_object = "bascule_probe_object.object_";

/// The compiler's answer about one member: its extents are those of a C array up to `axes`, and it has no `members`.
struct ProbedMember : StructMember {
    bool is_static = false;  ///< it is not a part of the object
};

/// The most members that one probe can ask about: a kernel's parameters must fit in 4 KiB.
inline constexpr std::size_t most_probed_members = 400;

/// Asks the compiler about members of the struct that the text calls `cpp_type` ("ns::Particle"). `helpers` is C++ that
/// the expressions need. The cache stores the probe as a separate program. Throws: CompileError if an expression is
/// refused; ArgumentError if the answer cannot be read; LibraryError.
std::vector<ProbedMember> probe_members(const ProbedProgram& probed, const std::string& cpp_type,
                                        const std::string& helpers,
                                        const std::vector<MemberExpression>& members);

/// Advice if a probe gives no answer.
inline std::string bytes_advice() {
    return advice("Pass the struct as bascule.raw_bytes(...), or by raw pointer.",
                  "Pass the struct itself, or a pointer to it.");
}

/// Throws an error for a refused probe, with the reasons common to all probes: private members, bit-fields.
[[noreturn]] void fail_probe(const std::string& log, const std::string& cpp_type);

/// The members of the struct `cpp_type` of the text, and of the member structs for which `like` has a tuple; `like`
/// also gives the number of members of each struct. For a class with `tuple_size`, such as cuda::std::array, these are
/// its elements.
///
/// Throws: ArgumentError (type, value) if the struct has another number of members, or members that a structured
/// binding cannot name (private ones, bit-fields, or some in the struct and others in a base); LibraryError.
std::vector<StructMember> read_members(const ProbedProgram& probed, const std::string& cpp_type,
                                       const TupleArgument& like);

}  // namespace bascule
