#include <cstdlib>

#include <bascule/jit/files/environment.hpp>

namespace bascule {

std::optional<std::string> path_from_environment(const char* variable) {
    const char* value = std::getenv(variable);
    if (value == nullptr) return std::nullopt;
    std::string path = value;
    const char* home = std::getenv("HOME");
    if (home != nullptr && *home == '/' && (path == "~" || path.starts_with("~/"))) path.replace(0, 1, home);
    return path;
}

}  // namespace bascule
