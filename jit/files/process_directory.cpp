#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <bascule/jit/files/process_directory.hpp>
#include <bascule/jit/process/fork_safety.hpp>

namespace bascule {
namespace {

constexpr const char* name_prefix = "bascule-process-";

bool has_room(const std::string& directory, std::uint64_t bytes) {
    struct statvfs status {};
    return statvfs(directory.c_str(), &status) == 0 &&
           std::uint64_t{status.f_bavail} * status.f_frsize >= bytes && access(directory.c_str(), W_OK) == 0;
}

/// Prefers a file system in memory to a disk, unless TMPDIR names a directory.
std::optional<std::string> place_for(std::uint64_t bytes) {
    const char* named = std::getenv("TMPDIR");
    if (named != nullptr && *named == '/') {
        return has_room(named, bytes) ? std::optional<std::string>(named) : std::nullopt;
    }
    for (const char* directory : {"/dev/shm", "/tmp"}) {
        if (has_room(directory, bytes)) return directory;
    }
    return std::nullopt;
}

/// The descriptor that holds the lock; -1 if another process holds it, or the directory does not belong to this user.
int lock_directory(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status {};
    if (file >= 0 && fstat(file, &status) == 0 && status.st_uid == geteuid() &&
        flock(file, LOCK_EX | LOCK_NB) == 0) {
        return file;
    }
    if (file >= 0) close(file);
    return -1;
}

void remove_all(const std::string& path) {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
}

/// Removes directories that killed processes left.
void sweep(const std::string& place) {
    std::error_code error;
    std::filesystem::directory_iterator entry(place, error);
    for (const std::filesystem::directory_iterator end; !error && entry != end; entry.increment(error)) {
        if (!entry->path().filename().string().starts_with(name_prefix)) continue;
        const std::string path = entry->path().string();
        const int lock = lock_directory(path);
        if (lock < 0) continue;
        remove_all(path);
        close(lock);
    }
}

}  // namespace

std::shared_ptr<const ProcessDirectory> ProcessDirectory::make(std::uint64_t bytes) {
    const std::optional<std::string> place = place_for(bytes);
    if (!place) return nullptr;
    sweep(*place);
    std::string path = *place + "/" + name_prefix + "XXXXXX";
    if (mkdtemp(path.data()) == nullptr) return nullptr;
    const int lock = lock_directory(path);
    if (lock < 0) return nullptr;
    return std::shared_ptr<const ProcessDirectory>(new ProcessDirectory(std::move(path), lock));
}

ProcessDirectory::ProcessDirectory(std::string path, int lock)
    : path_(std::move(path)), lock_(lock), fork_generation_(bascule::fork_generation()) {}

ProcessDirectory::~ProcessDirectory() {
    if (fork_generation_ == bascule::fork_generation()) remove_all(path_);
    close(lock_);
}

}  // namespace bascule
