// NVRTC's log -> diagnostics at the user's own file and line.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <bascule/interface/errors/diagnostic.hpp>
#include <bascule/jit/text/source.hpp>

namespace bascule {

/// The messages of a log, at the places that NVRTC gives: the canonical name is the user's text.
std::vector<Diagnostic> parse_log(const std::string& log);

/// Where NVRTC says a name expression was wrong, and not a line of a text.
bool concerns_name_expression(const Diagnostic& diagnostic);

/// The name expression that such a message is about, without blanks, which versions of NVRTC set differently; empty
/// when it does not say.
std::string name_expression_of(const Diagnostic& diagnostic);
std::string without_blanks(std::string text);

/// Where NVRTC found that the text had ended too early.
bool is_at_end_of_text(const Diagnostic& diagnostic);

/// The log with canonical places replaced by the user's: "kernels.cu:12: error: ...".
std::string readable_log(const std::string& log, const Source& source);

/// What parse_log gave, at the user's places.
std::vector<Diagnostic> at_user_places(std::vector<Diagnostic> diagnostics, const Source& source);

/// What a CompileError says: the first errors with their lines and carets, how many more there are, and help
/// for common mistakes. Notes about headers below one of `library_paths` are folded. `diagnostics` as
/// parse_log gave them.
std::string explain_failure(const std::vector<Diagnostic>& diagnostics, const std::string& log,
                            const Source& source, std::span<const std::string> library_paths = {});

}  // namespace bascule
