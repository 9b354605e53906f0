// The options of NVRTC: a row of one table says everything that Bascule knows about one.
#pragma once

#include <string>
#include <string_view>

namespace bascule {

/// Why `extra` cannot hold this, with what to say instead; empty for an option that NVRTC may have.
std::string refusal_of_extra(std::string_view option);

/// Whether this element of `extra` is known to change neither which files a compile reads nor where it looks for them.
bool leaves_files_alone(std::string_view option);

/// The option that NVRTC would have known, "--use_fast_math" for "--use_fast_maths"; empty when none is near.
std::string nearest_option(std::string_view option);

}  // namespace bascule
