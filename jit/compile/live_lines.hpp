// Which declarations of a text the compiler sees: it is asked at which of its lines a `__global__` is left when the
// preprocessor is done. No version of NVRTC gives the preprocessed text.
#pragma once

#include <set>
#include <string>

#include <bascule/jit/text/program.hpp>

namespace bascule {

/// Lines of the text that have a `__global__` that the compiler saw.
using LiveLines = std::set<int>;

/// What makes the compiler warn of each `__global__`, for the end of what precedes the text. Empty where options make
/// errors of warnings: no line is known to be live then.
std::string marks_of_live_lines(const Program& program);

/// Removes these warnings from the log of `program`, whose places are canonical, and returns their lines.
LiveLines take_live_lines(std::string& log, const Program& program);

}  // namespace bascule
