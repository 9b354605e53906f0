// The kernel templates of the headers that a text includes, which are in no image until one is asked for.
#pragma once

#include <vector>

#include <bascule/jit/text/source.hpp>
#include <bascule/jit/text/tokenizer.hpp>

namespace bascule {

/// Of headers that are texts, and of files beside the source and in the include paths; not of CUDA's. None where a
/// macro names a header. Reads the files.
std::vector<KernelDeclaration> header_templates(const Source& source, const CompileOptions& options);

}  // namespace bascule
