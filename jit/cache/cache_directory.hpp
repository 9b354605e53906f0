// The directory of the disk cache: where it is, whether it can be trusted, and its files: read whole,
// published whole.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bascule {

/// BASCULE_CACHE_DIR; else bascule in XDG_CACHE_HOME, when that is absolute; else ~/.cache/bascule, unless
/// the home lies in a directory that every user can write. Empty: no cache on disk. A BASCULE_CACHE_DIR that
/// is set and empty turns it off.
std::string default_cache_directory();

/// One directory, private to this user: made with mode 0700 at first use, refused when it is a link, another
/// user's, or writable by others. Its files are code that this process will run. Thread-safe; does not throw.
class CacheDirectory {
  public:
    explicit CacheDirectory(std::string path);

    const std::string& path() const noexcept { return path_; }

    struct File {
        std::string bytes;
        std::int64_t modified_ns = 0;
    };
    enum class Answer : std::uint8_t {
        read,
        missing,
        refused,   ///< not a file of ours: a link, another user's, writable by others, with a second name
        unusable,  ///< an I/O error, or the directory itself is refused: `problem` says what
    };
    Answer read(const std::string& name, File& file, std::string& problem) const;

    /// Writes a temporary file in the same directory and renames it to `name`: whoever reads sees
    /// the old file, or the whole new one. Says why when it fails; the old file is then as it was.
    std::optional<std::string> publish(const std::string& name, std::string_view bytes) const;

  private:
    std::string path_;
};

}  // namespace bascule
