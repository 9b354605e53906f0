// Paths that environment variables name.
#pragma once

#include <optional>
#include <string>

namespace bascule {

/// The value with a leading `~` replaced by the home directory: many shells leave it where a variable is set by
/// an IDE, a service or a Dockerfile. Nothing where the variable is unset.
std::optional<std::string> path_from_environment(const char* variable);

}  // namespace bascule
