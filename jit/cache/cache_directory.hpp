// The directory of the disk cache: where it is, whether it can be trusted, and its files: read whole, published whole,
// listed and removed.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bascule {

/// Where compiled programs are kept.
struct CachePlace {
    CachePlace(std::string of_path = {}, std::string why_not = {})  // NOLINT(google-explicit-constructor)
        : path(std::move(of_path)), problem(std::move(why_not)) {}
    std::string path;     ///< empty: nowhere, as was asked for or because there is no home directory
    std::string problem;  ///< why nothing may be kept there; empty where it may
};

/// BASCULE_CACHE_DIR, where set and empty means nowhere; else bascule in XDG_CACHE_HOME, when that is absolute; else
/// ~/.cache/bascule. The last has a problem where others can replace a directory on its way: one that every user can
/// write, unless it is sticky, as /tmp is, and what lies below it belongs to this user.
CachePlace default_cache_place();

/// One directory, made with mode 0700 at first use. Its files are code that this process will run: it is refused
/// when it is a link, writable by others, or neither this user's nor root's. What root owns can be read by
/// everybody: an image of a container has a cache of root's. Thread-safe; does not throw.
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
        refused,   ///< not a file to trust: a link, another user's, writable by others, with a second name
        unusable,  ///< an I/O error, or the directory itself is refused: `problem` says what
    };
    Answer read(const std::string& name, File& file, std::string& problem) const;

    /// Writes a temporary file in the same directory and renames it to `name`: a reader sees the old
    /// file, or the whole new one. Begins again when the directory or the temporary file is removed
    /// meanwhile. Says why when it fails; the old file is then as it was.
    std::optional<std::string> publish(const std::string& name, std::string_view bytes) const;

    struct Listed {
        std::string name;
        std::uint64_t bytes = 0;
        std::int64_t modified_ns = 0;
    };
    /// The regular files, in no order; none when there is no directory. Says why when it cannot be read.
    std::optional<std::string> list(std::vector<Listed>& files) const;
    /// Removes what is still there of `files`, and says why the first one that it could not remove stays.
    std::optional<std::string> remove(const std::vector<Listed>& files) const;
    /// Sets a file's time of modification, as well as that goes.
    void stamp(const std::string& name, std::int64_t modified_ns) const;

    /// A file that this thread holds locked among all processes of the machine. The system ends a lock with its
    /// process; the file is removed when it is unlocked, else by a sweep.
    class Lock {
      public:
        Lock(const CacheDirectory& directory, std::string name, int file) noexcept;
        Lock(Lock&& other) noexcept;
        ~Lock();

      private:
        const CacheDirectory* directory_;
        std::string name_;
        int file_;
    };
    /// Waits until nobody holds `name` locked, as long as the other process that does goes on. Nothing where that one is
    /// stopped, of another machine or dead for `longest`, or a thread of this process holds it for so long; where the directory
    /// cannot be written or its file system has no locks; in a thread that holds another lock, which might wait for a process
    /// that waits for it; and in a forked child, for which the holder may wait.
    std::optional<Lock> lock(const std::string& name, std::chrono::milliseconds longest) const;

    /// Whether `publish` made this name for a file that it has not renamed yet.
    static bool is_temporary(std::string_view name);

  private:
    std::string path_;
};

}  // namespace bascule
