// Paths as strings.
#pragma once

#include <optional>
#include <string>

namespace bascule {

/// Empty if the system does not report it.
std::string working_directory();
/// Makes `path` absolute, relative to the working directory.
std::string absolute_path(const std::string& path);

/// The part before the last slash; empty without one.
std::string parent_of(const std::string& path);
std::string join(const std::string& directory, const std::string& name);

/// The variable's value, with a leading `~` replaced by the home directory, because shells do not expand it if an IDE,
/// a service or a Dockerfile sets the variable. Nothing if the variable is not set.
std::optional<std::string> path_from_environment(const char* variable);

}  // namespace bascule
