// The options of NVRTC: one row of a table has everything that Bascule knows about an option.
#pragma once

#include <string>
#include <string_view>

namespace bascule {

/// Why `extra` must not contain this option, and what to use instead; empty for an option that may be passed to NVRTC.
std::string refusal_of_extra(std::string_view option);

/// Whether this element of `extra` is known to change neither which files a compile reads nor where it looks for them.
bool leaves_files_alone(std::string_view option);

/// The NVRTC option with the most similar name, "--use_fast_math" for "--use_fast_maths"; empty if none is similar.
std::string nearest_option(std::string_view option);

}  // namespace bascule
