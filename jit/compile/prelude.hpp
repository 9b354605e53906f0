// The device header that every program gets by -include, before its own first line.
#pragma once

#include <string>

#include <bascule/jit/text/program.hpp>

namespace bascule {

inline constexpr const char* prelude_name = "bascule_prelude.h";

/// Everything: signatures, views, bounds checks, loops, variables.
const std::string& whole_prelude();
/// The templates behind reflection alone, a third of it.
const std::string& signature_prelude();

/// As much of it as this program can use, because a small kernel compiles 6 % faster without the views. All of it
/// where the text names `bascule`, includes something, or has what could spell either: ##, a line that is continued,
/// options that Bascule does not know.
const std::string& prelude_for(const Program& program);

}  // namespace bascule
