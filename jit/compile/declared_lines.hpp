// This finds which declaration of a text a name means to the compiler, which sees macros, #if and overloads. NVRTC does not
// give the preprocessed text; but it warns of what is deprecated, and says where that is declared.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <bascule/jit/text/program.hpp>

namespace bascule {

/// Maps a name expression, without blanks, to the line of the text that declares what it means: the line of a `__global__`
/// or of a name. The line is 0 where the declaration is not in the text.
using DeclaredLines = std::map<std::string, int>;

/// Returns what makes the compiler tell them; it belongs at the end of what precedes the text. It is empty for a text without
/// directives and defines, whose kernels are what they seem to be, and where options turn warnings into errors.
std::string question_of_declared_lines(const Program& program);

/// Removes the answers from the log of `program`, whose places are canonical, and returns them.
DeclaredLines take_declared_lines(std::string& log, const Program& program,
                                  std::vector<std::string> expressions);

}  // namespace bascule
