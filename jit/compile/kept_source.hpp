// Writes the files of CompileOptions::keep_sources, which debuggers and profilers show.
#pragma once

#include <bascule/jit/text/source.hpp>

namespace bascule {

/// Writes the file `program_name`, unless it exists with this text; replaces a link. Throws: FileError with the option.
void keep_source(const Source& source, const CompileOptions& options);

}  // namespace bascule
