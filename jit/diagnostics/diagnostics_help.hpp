// Help for common mistakes and for names that the compiler does not know: one line that says what was probably meant.
#pragma once

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/program/program.hpp>

namespace bascule {

/// A sentence without "help: ", or empty. `diagnostic` is from parse_log.
std::string help_for(const Diagnostic& diagnostic, const Source& source);

/// Lines about include directories that do not exist, if a header was not found; otherwise empty.
std::string help_for_directories(const std::vector<Diagnostic>& diagnostics, const CompileOptions& options);

/// Whether the error is a string that is not closed on its line.
bool is_unclosed_string(const Diagnostic& diagnostic);

/// The name that a message says is undefined, without its scope: "min" for `cuda::std::min`. Empty for other messages.
std::string unknown_name(const Diagnostic& diagnostic);

/// Help about that name: the header, the namespace, or the name that was meant; may be empty.
std::string help_for_name(const std::string& name, const Diagnostic& diagnostic, const Source& source);

/// The header that defines a class of cuda::std which is only declared so far. Empty for other messages.
std::string header_for_incomplete(const std::string& message);

}  // namespace bascule
