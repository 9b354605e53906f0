#include <algorithm>
#include <cerrno>
#include <ctime>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bascule/jit/files/file_identity.hpp>

namespace bascule {
namespace {

Place place_of(const struct stat& status) {
    Place place;
    place.kind = S_ISREG(status.st_mode) ? PlaceKind::file : PlaceKind::other;
    place.identity = {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size),
                      nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
    return place;
}

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;

}  // namespace

Place place_at(const std::string& path) noexcept {
    struct stat status {};
    if (stat(path.c_str(), &status) == 0) return place_of(status);
    const bool missing = errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ENAMETOOLONG;
    return {missing ? PlaceKind::missing : PlaceKind::unknown, {}};
}

PlaceKind includable_at(const std::string& path) noexcept {
    const PlaceKind kind = place_at(path).kind;
    if (kind != PlaceKind::file) return kind;
    return faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) == 0 ? kind : PlaceKind::other;
}

bool is_endless(const std::string& path) noexcept {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

std::optional<std::string> read_file(const std::string& path) {
    // O_NONBLOCK, because a pipe that replaced the file would block this call.
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return std::nullopt;
    struct stat status {};
    bool good = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
    std::string text;
    std::size_t got = 0;
    if (good)
        text.resize(std::min<std::uint64_t>(static_cast<std::uint64_t>(status.st_size), most_bytes) + 1);
    while (good) {
        const ssize_t count = read(file, text.data() + got, text.size() - got);
        if (count < 0 && errno == EINTR) continue;
        if (count == 0) break;
        if (count > 0) got += static_cast<std::size_t>(count);
        good = count > 0 && got <= most_bytes;
        if (got == text.size()) text.resize(2 * got);
    }
    close(file);
    if (!good) return std::nullopt;
    text.resize(got);
    return text;
}

std::int64_t now_ns() noexcept {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return nanoseconds(now);
}

}  // namespace bascule
