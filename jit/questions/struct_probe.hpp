// Compares a dtype with a struct of the user's text, by compiling the text with a probe appended.
#pragma once

#include <bascule/interface/types/struct_layout.hpp>
#include <bascule/jit/questions/probed_members.hpp>

namespace bascule {

/// Compares the named fields of a dtype or a ctypes structure with the struct that the text calls `cpp_type`
/// ("ns::Particle"), whose sizeof is `bytes`: each field must exist at the same offset with an equal type and shape,
/// also in nested structures, and both must have the same size. Four numbers match a float4. Bytes that `given` does not
/// name are ignored.
///
/// Throws: ArgumentError (type) with what differs, or with the reason why the compiler does not report it (private
/// members, bit-fields); LibraryError.
void check_layout(const ProbedProgram& probed, const std::string& cpp_type, std::uint32_t bytes,
                  const StructLayout& given, LayoutSource source = LayoutSource::dtype);

}  // namespace bascule
