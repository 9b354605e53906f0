// Help for common mistakes: one line that says what the user probably meant.
#pragma once

#include <string>

#include <bascule/interface/errors/diagnostic.hpp>
#include <bascule/jit/program/source.hpp>

namespace bascule {

/// A sentence without "help: ", or empty. `diagnostic` is from parse_log.
std::string help_for(const Diagnostic& diagnostic, const Source& source);

/// Lines about include directories that do not exist, if a header was not found; otherwise empty.
std::string help_for_directories(const std::vector<Diagnostic>& diagnostics, const CompileOptions& options);

/// Whether the error is a string that is not closed on its line.
bool is_unclosed_string(const Diagnostic& diagnostic);

}  // namespace bascule
