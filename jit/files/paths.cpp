#include <cstdlib>
#include <dlfcn.h>
#include <link.h>
#include <sstream>
#include <string_view>

#include <bascule/jit/files/paths.hpp>

namespace bascule {
namespace {

#if defined(__x86_64__)
constexpr const char* multiarch = "x86_64-linux-gnu";
#elif defined(__aarch64__)
constexpr const char* multiarch = "aarch64-linux-gnu";
#else
constexpr const char* multiarch = "";
#endif

/// The directory of the program or shared library that contains this code; empty if unknown.
std::filesystem::path own_directory() {
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&own_places), &info) == 0) return {};
    std::error_code ignored;
    // The main program is known by its argv[0], which is wrong once the working directory has changed.
    std::filesystem::path binary = std::filesystem::canonical(info.dli_fname, ignored);
    if (ignored) binary = std::filesystem::read_symlink("/proc/self/exe", ignored);
    return binary.parent_path();
}

/// The RUNPATH of the binary with this code. The loader searches it too, but not if a sanitizer intercepts dlopen; and
/// the error about a missing library names each directory.
std::vector<std::filesystem::path> own_run_path(const std::filesystem::path& origin) {
    Dl_info info{};
    link_map* map = nullptr;
    const void* here = reinterpret_cast<const void*>(&own_places);
    if (dladdr1(here, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 || map == nullptr)
        return {};
    const char* strings = nullptr;
    std::size_t offset = 0;
    bool found = false;
    for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
        if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
        if (entry->d_tag != DT_RUNPATH && entry->d_tag != DT_RPATH) continue;
        offset = entry->d_un.d_val;
        found = true;
    }
    std::vector<std::filesystem::path> directories;
    if (!found || strings == nullptr) return directories;
    // glibc makes the table's address absolute; other loaders leave an offset.
    if (reinterpret_cast<std::uintptr_t>(strings) < map->l_addr) strings += map->l_addr;
    std::istringstream list(strings + offset);
    for (std::string directory; std::getline(list, directory, ':');) {
        constexpr std::string_view placeholder = "$ORIGIN";
        if (directory.starts_with(placeholder)) directory.replace(0, placeholder.size(), origin.string());
        if (!directory.empty()) directories.emplace_back(directory);
    }
    return directories;
}

}  // namespace

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

std::vector<std::filesystem::path> own_places() {
    const std::filesystem::path directory = own_directory();
    if (directory.empty()) return {};
    std::vector<std::filesystem::path> places = {directory, (directory / ".." / "lib").lexically_normal(),
                                                 (directory / ".." / "lib" / multiarch).lexically_normal()};
    for (std::filesystem::path& listed : own_run_path(directory)) places.push_back(std::move(listed));
    return places;
}

}  // namespace bascule
