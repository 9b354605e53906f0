// The files of CompileOptions::keep_sources: texts that debuggers and profilers show.
#pragma once

#include <bascule/jit/text/source.hpp>

namespace bascule {

/// Writes the file that `program_name` names, unless it is there with this text; a link there is replaced. Throws: FileError that names the option.
void keep_source(const Source& source, const CompileOptions& options);

}  // namespace bascule
