// Paths as texts.
#pragma once

#include <optional>
#include <string>

namespace bascule {

/// Empty when the system does not report it.
std::string working_directory();
/// `path` as it is from the root; relative to the working directory.
std::string absolute_path(const std::string& path);

/// What is before the last slash; empty without one.
std::string parent_of(const std::string& path);
std::string join(const std::string& directory, const std::string& name);

/// The value with a leading `~` replaced by the home directory: many shells leave it where a variable is set by
/// an IDE, a service or a Dockerfile. Nothing where the variable is unset.
std::optional<std::string> path_from_environment(const char* variable);

}  // namespace bascule
