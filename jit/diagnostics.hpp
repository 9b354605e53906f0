// NVRTC's log -> errors at the user's own file and line.
#pragma once

#include <string>
#include <vector>

#include <bascule/jit/source.hpp>

namespace bascule {

/// One message of NVRTC's log.
struct Diagnostic {
    bool is_error = false;
    std::string file;     ///< as NVRTC wrote it: the canonical name for the user's text
    int line = 0;         ///< in `file`, from 1; 0: at the end of the text
    std::string message;  ///< "error: identifier \"x\" is undefined"
    std::string body;     ///< the source line, the caret, notes; each line ends with a newline
};

/// The name under which every text is compiled: the same text is the same program wherever it came from.
std::string canonical_name(const std::string& text);

std::vector<Diagnostic> parse_log(const std::string& log);

/// Where NVRTC says a name expression was wrong, and not a line of anybody's text.
bool concerns_name_expression(const Diagnostic& diagnostic);

/// The name expression that such a message is about; empty when it does not say.
std::string name_expression_of(const Diagnostic& diagnostic);

/// The log with canonical places replaced by the user's: "kernels.cu:12: error: ...".
std::string readable_log(const std::string& log, const Source& source);

/// What a CompileError says: the first errors with their lines and carets, how many more there are, and help
/// for common mistakes.
std::string explain_failure(const std::vector<Diagnostic>& diagnostics, const std::string& log,
                            const Source& source);

}  // namespace bascule
