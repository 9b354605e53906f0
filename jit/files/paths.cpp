#include <cstdlib>
#include <filesystem>

#include <bascule/jit/files/paths.hpp>

namespace bascule {

std::string working_directory() {
    std::error_code error;
    const std::filesystem::path path = std::filesystem::current_path(error);
    return error ? std::string() : path.string();
}

std::string absolute_path(const std::string& path) {
    return path.starts_with('/') ? path : join(working_directory(), path);
}

std::string parent_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == path.npos ? "" : path.substr(0, slash);
}

std::string join(const std::string& directory, const std::string& name) {
    return directory.ends_with('/') ? directory + name : directory + "/" + name;
}

std::optional<std::string> path_from_environment(const char* variable) {
    const char* value = std::getenv(variable);
    if (value == nullptr) return std::nullopt;
    std::string path = value;
    const char* home = std::getenv("HOME");
    if (home != nullptr && *home == '/' && (path == "~" || path.starts_with("~/"))) path.replace(0, 1, home);
    return path;
}

}  // namespace bascule
