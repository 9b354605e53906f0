// Which file a path leads to, and whether it may have changed: one stat.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>

namespace bascule {

/// What a stat says about a file's content. A change of the content changes one of these,
/// provided that the clock has moved on since the last change.
struct FileIdentity {
    std::uint64_t device = 0, inode = 0, bytes = 0;
    std::int64_t modified_ns = 0, changed_ns = 0;  ///< since 1970

    bool operator==(const FileIdentity&) const = default;
};

/// What a path leads to.
enum class PlaceKind : char {
    file = 'f',     ///< a regular file
    other = 'o',    ///< a directory, a pipe, what may not be read: nothing that can be included
    missing = 'm',  ///< nothing is there
    unknown = '?',  ///< the system does not say
};

struct Place {
    PlaceKind kind = PlaceKind::unknown;
    FileIdentity identity;  ///< of a file or of something else
};

/// Follows links.
Place place_at(const std::string& path) noexcept;

/// What a compiler finds that looks for a header there: it passes over a file that it may not read.
PlaceKind includable_at(const std::string& path) noexcept;

/// Whether reading it may have no end: a pipe, a socket or a device.
bool is_endless(const std::string& path) noexcept;

/// The content of a regular file to its end, whatever its size says; nothing when it cannot be read,
/// or has more than 1 GiB.
std::optional<std::string> read_file(const std::string& path);

inline std::int64_t nanoseconds(const timespec& time) noexcept {
    return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

/// Nanoseconds since 1970, by the clock that files are stamped with.
std::int64_t now_ns() noexcept;

}  // namespace bascule
