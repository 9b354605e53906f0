// The files of CompileOptions::keep_sources: texts that debuggers and profilers show.
#pragma once

#include <string>

#include <bascule/jit/text/source.hpp>

namespace bascule {

/// Writes the file that `program_name` names, unless it is there with this text; a link there is replaced. Throws: FileError that names the option.
void keep_source(const Source& source, const CompileOptions& options);

/// The directory that BASCULE_KEEP_SOURCES names, for options without one; empty: none.
std::string keep_sources_from_environment();

}  // namespace bascule
