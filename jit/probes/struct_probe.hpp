// The field offsets of a struct of the user's text, by a compile of the text with a probe appended.
#pragma once

#include <string>

#include <bascule/interface/types/struct_layout.hpp>
#include <bascule/jit/cache/cache.hpp>

namespace bascule {

/// Compares the named fields of a dtype with the struct that the text calls `cpp_type` ("ns::Particle"): each
/// must be there, at the same offset, of an equal type and shape, structures inside structures too. Bytes
/// that the dtype does not name are not looked at. The probe is a program of its own in the cache.
///
/// Throws: ArgumentError (type) with the first difference, or with the reason why the compiler does not report them
/// (private members, bit-fields); LibraryError.
void check_layout(const Source& source, const CompileOptions& options, Arch arch, Cache& cache,
                  const std::string& cpp_type, const StructLayout& given);

}  // namespace bascule
