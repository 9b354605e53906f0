// Which declaration of a text a name means, as the compiler sees it: macros, #if and overloads included. No version of
// NVRTC gives the preprocessed text; but of what is deprecated it warns, and says where that is declared.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <bascule/jit/text/program.hpp>

namespace bascule {

/// Of name expressions, without blanks, the line of the text that declares what they mean: that of a `__global__`, or of a
/// name. 0 where that is no line of the text.
using DeclaredLines = std::map<std::string, int>;

/// What makes the compiler tell them, for the end of what precedes the text. Empty for a text without directives and
/// defines, whose kernels are what they seem to be, and where options make errors of warnings.
std::string question_of_declared_lines(const Program& program);

/// Removes the answers from the log of `program`, whose places are canonical, and returns them.
DeclaredLines take_declared_lines(std::string& log, const Program& program,
                                  std::vector<std::string> expressions);

}  // namespace bascule
