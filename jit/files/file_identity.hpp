// Finds which file a path leads to and whether it may have changed, with one stat; XXH3-128 digests of contents and keys.
#pragma once

#include <compare>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

namespace bascule {

/// A 128-bit digest of a text. It detects accidental changes, not attacks.
struct Digest {
    std::uint64_t high = 0, low = 0;

    auto operator<=>(const Digest&) const = default;
};

Digest digest_of(std::string_view bytes) noexcept;

std::string to_string(const Digest& digest);  ///< 32 hexadecimal digits

/// Attributes of a file. A change of its content changes one of them, provided that the clock has advanced since the
/// last change.
struct FileIdentity {
    std::uint64_t device = 0, inode = 0, bytes = 0;
    std::int64_t modified_ns = 0, changed_ns = 0;  ///< since 1970

    bool operator==(const FileIdentity&) const = default;
};

/// The kind of object that a path leads to.
enum class PlaceKind : char {
    file = 'f',     ///< a regular file
    other = 'o',    ///< a directory, a pipe, an unreadable file: it cannot be included
    missing = 'm',  ///< nothing is there
    unknown = '?',  ///< the system call failed for another reason
};

struct Place {
    PlaceKind kind = PlaceKind::unknown;
    FileIdentity identity;  ///< of a file or of something else
};

/// What is at `path`, after following links.
Place place_at(const std::string& path) noexcept;

/// The kind of object at `path` for a compiler that looks for a header: an unreadable file is `other`.
PlaceKind includable_at(const std::string& path) noexcept;

/// Whether reading the file at `path` may never end: true for pipes, sockets and devices.
bool is_endless(const std::string& path) noexcept;

/// The content of a regular file, even if its size is wrong; nothing if it cannot be read, or is above 1 GiB.
std::optional<std::string> read_file(const std::string& path);

inline std::int64_t nanoseconds(const timespec& time) noexcept {
    return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

/// Nanoseconds since 1970, by the clock of file times.
std::int64_t now_ns() noexcept;

/// Files with equal identities hold the same code. Empty if the file cannot be read.
///
/// The identity is the linker's build ID, a SHA-1 of the linked content, with the file's size and modification time.
/// Reading and hashing the 100 MB of an NVRTC would take 30 to 100 ms in every process. The build ID alone would miss a
/// file that was patched after linking; patching changes its time. A file without a build ID is hashed.
std::string library_identity(const std::string& path);

}  // namespace bascule
