// Turns NVRTC's log into diagnostics at the user's own file and line.
#pragma once

#include <span>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/program/program.hpp>

namespace bascule {

/// The messages of a log, at the places that NVRTC gives: the canonical name means the user's text.
std::vector<Diagnostic> parse_log(const std::string& log);

/// Whether NVRTC's message concerns a name expression rather than a line of a text.
bool concerns_name_expression(const Diagnostic& diagnostic);

/// The name expression that such a message concerns, without blanks, because NVRTC versions place them differently;
/// empty if the message does not name it.
std::string name_expression_of(const Diagnostic& diagnostic);
std::string without_blanks(std::string text);

/// Whether the error is that the text ends too early.
bool is_at_end_of_text(const Diagnostic& diagnostic);

/// The log with canonical places replaced by the user's: "kernels.cu:12: error: ...".
std::string readable_log(const std::string& log, const Source& source);

/// The result of parse_log, at the user's places.
std::vector<Diagnostic> at_user_places(std::vector<Diagnostic> diagnostics, const Source& source);

/// The message of a CompileError: the first errors with their lines and carets, the number of further ones, and help
/// for common mistakes. Shortens notes about headers below `library_paths`. `diagnostics` is the result of parse_log.
std::string explain_failure(const std::vector<Diagnostic>& diagnostics, const std::string& log,
                            const Source& source, std::span<const std::string> library_paths = {});

}  // namespace bascule
