// The directory of the disk cache: its place, whether it can be trusted, and its files.
#pragma once

#include <chrono>

#include <bascule/jit/options/cache_settings.hpp>

namespace bascule {

/// BASCULE_CACHE_DIR if it is set (empty means that nothing is kept); else `bascule` in XDG_CACHE_HOME if that is
/// absolute; else ~/.cache/bascule. Only for the last one, `problem` is set if others can replace a directory on the
/// path: if every user can write to its parent, unless that is sticky like /tmp and the directory belongs to this user
/// or root.
CachePlace default_cache_place();

/// One directory, made with mode 0700 at first use. Its files are code that this process will run, so it is refused if
/// it is a link, is writable by others, or belongs to another user than this one or root. A directory of root's is
/// trusted so that container images can contain a cache. Thread-safe; does not throw.
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
        refused,   ///< not a regular file, another user's, writable by others, hard-linked, or above 1 GiB
        unusable,  ///< an I/O error, or the directory itself is refused: `problem` says what
    };
    Answer read(const std::string& name, File& file, std::string& problem) const;

    /// Writes a temporary file in the same directory and renames it to `name`, so that readers see the old file or the
    /// whole new one. Tries again if the directory or the temporary file is removed meanwhile. Returns the reason if it
    /// fails; the old file is then unchanged.
    std::optional<std::string> publish(const std::string& name, std::string_view bytes) const;

    struct Listed {
        std::string name;
        std::uint64_t bytes = 0;
        std::int64_t modified_ns = 0;
    };
    /// The regular files, in any order; empty if the directory does not exist. Returns the reason if it cannot be read.
    std::optional<std::string> list(std::vector<Listed>& files) const;
    /// Removes those of `files` that still exist. Returns the reason for the first one that it could not remove.
    std::optional<std::string> remove(const std::vector<Listed>& files) const;
    /// Sets a file's time of modification, if possible.
    void stamp(const std::string& name, std::int64_t modified_ns) const;

    /// A file that this thread holds locked among all processes of the machine. The system releases the lock when the
    /// process ends. The file is removed when it is unlocked, or else by a sweep.
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
    /// Locks `name`; waits until nobody else holds it, as long as the holding process runs. Returns nothing:
    ///  - if for `longest` the holder was stopped, dead or on another machine, or was a thread of this process;
    ///  - if the directory cannot be written, or its file system has no locks;
    ///  - in a thread that holds another lock, because the other process might wait for this one;
    ///  - in a forked child, because the holder may wait for it.
    std::optional<Lock> lock(const std::string& name, std::chrono::milliseconds longest) const;

    /// Whether `publish` makes names like this for files that it has not renamed yet.
    static bool is_temporary(std::string_view name);

  private:
    std::string path_;
};

}  // namespace bascule
