// The device header that all programs get by -include, before their own first line.
#pragma once

#include <string>

#include <bascule/jit/text/program.hpp>

namespace bascule {

inline constexpr const char* prelude_name = "bascule_prelude.h";

/// The whole prelude: signatures, views, bounds checks, loops, variables.
const std::string& whole_prelude();
/// The templates that reflection needs, a third of the prelude.
const std::string& signature_prelude();

/// The part of the prelude that this program can use, because a small kernel compiles 6 % faster without the views. It
/// is the whole prelude if the text names `bascule`, includes a header, or contains something that could spell either
/// (##, a continued line), and if options that Bascule does not know are set.
const std::string& prelude_for(const Program& program);

}  // namespace bascule
