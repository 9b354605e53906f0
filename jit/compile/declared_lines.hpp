// Finds which declaration of a text the compiler means by a name; it expands macros, #if and overloads. NVRTC does not
// return the preprocessed text, but its warnings about deprecated functions name the place of their declaration.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <bascule/jit/text/program.hpp>

namespace bascule {

/// Maps a name expression, without blanks, to the line of the text that declares it: the line of a `__global__` or of a
/// name. The line is 0 if the declaration is not in the text.
using DeclaredLines = std::map<std::string, int>;

/// Returns the text that makes the compiler report these lines; it must follow everything else that precedes the
/// program's text. It is empty if options turn warnings into errors, and for a text without directives and defines,
/// because its kernels can be read from the text.
std::string question_of_declared_lines(const Program& program);

/// Removes these warnings from the log of `program`, whose places are canonical, and returns the lines.
DeclaredLines take_declared_lines(std::string& log, const Program& program,
                                  std::vector<std::string> expressions);

}  // namespace bascule
