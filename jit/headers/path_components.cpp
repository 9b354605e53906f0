#include <algorithm>
#include <filesystem>
#include <sys/stat.h>

#include <bascule/jit/files/file_identity.hpp>
#include <bascule/jit/headers/path_components.hpp>

namespace bascule {
namespace {

constexpr int most_links = 40;  // Linux follows no more

std::string directory_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos || path.size() == 1 ? ""
                                                          : path.substr(0, std::max<std::size_t>(slash, 1));
}

}  // namespace

/// All members are zero if nothing exists at `path`.
PathComponents::Component PathComponents::look_at(const std::string& path) {
    struct stat status {};
    if (lstat(path.c_str(), &status) != 0) return {};
    return {status.st_dev,
            status.st_ino,
            nanoseconds(status.st_mtim),
            nanoseconds(status.st_ctim),
            S_ISDIR(status.st_mode),
            (status.st_mode & S_ISVTX) != 0,
            false};
}

std::string PathComponents::resolve(std::string directory, const std::string& path, int links) {
    const std::size_t slash = path.rfind('/');
    std::string name = path;
    if (slash != path.npos) {  // the directory first, because most paths share it
        name = path.substr(slash + 1);
        const std::string before = path.substr(0, slash);
        if (path.starts_with('/')) {
            const auto known = directories_.find(before);
            if (known != directories_.end()) {
                directory = known->second;
            } else {
                directory = before.empty() ? "/" : resolve("/", before, links);
                directories_[before] = directory;
            }
        } else {
            directory = resolve(directory, before, links);
        }
    }
    if (name.empty() || name == ".") return directory;
    if (name == "..") return directory_of(directory).empty() ? "/" : directory_of(directory);
    std::string here = directory == "/" ? directory + name : directory + "/" + name;
    const auto [added, is_new] = components_.try_emplace(here);
    if (is_new) added->second = look_at(here);
    if (added->second.inode == 0 || added->second.is_directory || links == most_links) return here;
    std::error_code no_link;
    const std::filesystem::path target = std::filesystem::read_symlink(here, no_link);
    return no_link ? here : resolve(directory, target.string(), links + 1);
}

void PathComponents::add_missing(const std::string& path) {
    const std::string directory = resolve("/", directory_of(path), 0);
    if (const auto found = components_.find(directory); found != components_.end())
        found->second.entries_count = !found->second.is_shared;
}

bool PathComponents::untouched() const {
    return std::ranges::all_of(components_,
                               [&](const auto& each) { return is_untouched(each.first, each.second); });
}

bool PathComponents::is_untouched(const std::string& path, const Component& then) const {
    Component now = look_at(path);
    now.entries_count = then.entries_count;
    if (now == then) return true;
    const bool same =
        now.is_directory && then.is_directory && now.device == then.device && now.inode == then.inode;
    // If only its change time differs, it was renamed or its permissions changed.
    if (!same || then.entries_count || now.modified_ns == then.modified_ns) return false;
    // An entry was created or removed in it, which sets both times. If its parent has no such change, the directory
    // itself was not exchanged. A shared parent is not checked, because it changes all the time.
    const auto parent = components_.find(directory_of(path));
    return parent == components_.end() || parent->second.is_shared ||
           look_at(parent->first).modified_ns == parent->second.modified_ns;
}

}  // namespace bascule
