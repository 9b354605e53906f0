// Maps the canonical place of a line, which images contain, to the user's own file.
#pragma once

#include <string>

#include <bascule/jit/text/source.hpp>

namespace bascule {

/// Remembers where a text came from; the newest place of equal texts counts. Bounded: the oldest are
/// forgotten. Thread-safe.
void remember_place(const Source& source, const CompileOptions& options = {});

/// The report with "line 2 of /bascule/<hash>.cu" replaced by the user's line, its file and its text.
/// Thread-safe.
std::string with_user_places(std::string report);

}  // namespace bascule
