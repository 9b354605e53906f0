// Images on disk: found by key, verified before use. Sweeps limit their size: they remove the least recently used entries,
// and files that killed processes left.
#pragma once

#include <atomic>
#include <functional>

#include <bascule/jit/lookup/cache_directory.hpp>
#include <bascule/jit/lookup/cache_entry.hpp>

namespace bascule {

/// The file name of an entry: 32 hexadecimal digits of the key, a dot, and the place of the header state.
std::string entry_name(const Digest& key, int place);
bool is_entry_name(std::string_view name);
/// The file that a process locks while it makes the entry of a key.
std::string lock_name(const Digest& key);

/// Whether a file's time is an hour or more before or after `now_ns`. A time in the future comes from a clock that
/// jumped; it is not trusted, and the file is stamped again.
bool is_outdated(std::int64_t stamp_ns, std::int64_t now_ns) noexcept;
/// The time of a file's last use, for comparisons: a time an hour or more in the future counts as the oldest.
std::int64_t last_use_ns(std::int64_t stamp_ns, std::int64_t now_ns) noexcept;

/// What a sweep removed: counts, not names.
struct Removed {
    std::uint64_t entries = 0;
    std::uint64_t bytes = 0;  ///< of the entries
    /// One sentence about the first failure. The sweep still removes everything else that it can.
    std::optional<std::string> problem{};
};

/// Removes the least recently used entries until the others have at most `limit_bytes`, and temporary files and locks
/// that no process has touched for an hour. Leaves other files alone. Other processes may sweep, read and store at the
/// same time; an entry that one of them then misses costs a compile.
Removed sweep(const CacheDirectory& directory, std::uint64_t limit_bytes);

/// Sweeps unless a process has swept within the last hour. The time of a file in the directory records that.
void sweep_if_due(const CacheDirectory& directory, std::uint64_t limit_bytes);

/// Makes programs start faster and never fails one: any fault of the directory or an entry is a miss. The first fault
/// of the directory is reported; bad entries are not. Thread-safe; holds no mutex.
class DiskCache {
  public:
    /// Receives a sentence: for each cache at most one about the directory and one about the limit.
    using WarningHandler = std::function<void(const std::string&)>;

    /// If the place has no path, or a problem, nothing is found and nothing is kept.
    DiskCache(CachePlace place, WarningHandler warn, CacheLimit limit = {});

    /// The result of a search.
    struct Found {
        CacheEntry entry;  ///< its image is null if none was found
        int place = 0;     ///< where to store an image that was not found: a free place, or the oldest
    };
    /// Finds the entry of `key` that was made from the headers as they are now. Records its use, at most once an hour.
    Found load(const CacheKey& key, const WantedHeaders& wanted);
    /// Locks `key` among the processes that use the directory: the others wait, while this process runs, for the entry
    /// that it stores. Returns nothing if nothing is kept, or where CacheDirectory::lock does (with half a minute),
    /// such as for a stopped holder; two processes may then compile the same program.
    std::optional<CacheDirectory::Lock> lock(const CacheKey& key) const;
    /// Why `load` found nothing, for the log: what differs between the program and the most similar entry. For an entry
    /// of the same key that is a changed header; for one of the same text, the options, architecture, NVRTC or Bascule
    /// version. Reads up to 256 entries, so it is called only if the log is enabled. Does not throw because of bad
    /// entries.
    std::string why_missing(const CacheKey& key, const std::string& source_directory) const;
    /// Stores an image at the place that `load` returned, unless it alone is larger than the limit.
    void store(const CacheKey& key, int place, const HeaderManifest& headers, const Image& image);
    /// Keeps the directory within the limit, at most once an hour. Called after a store, without a lock.
    void sweep_if_due();

    // The functions below are for users, and can be called at any time. They report a problem if the directory cannot
    // be read or changed; a directory that does not exist counts as empty.

    struct Listed {
        std::string name;  ///< of the file
        std::uint64_t bytes = 0;
        std::int64_t used_ns = 0;  ///< since 1970, to the hour
        EntryDescription description;
    };
    /// Every entry, read and verified, most recently used first.
    std::vector<Listed> list(std::optional<std::string>& problem) const;
    /// The bytes of an entry; nothing if there is no entry of this name, or it cannot be trusted.
    std::optional<std::string> bytes_of(const std::string& name) const;
    /// Stores an entry that `bytes_of` returned, here or on another machine. Returns false if it was already here, if
    /// all places for header states are taken, or after a `problem`.
    bool adopt(std::string_view bytes, std::optional<std::string>& problem);
    /// Sweeps now, down to the limit.
    Removed sweep() const;
    /// Removes all entries, and what killed processes left.
    Removed remove_all() const;

    const std::string& directory() const noexcept { return place_.path; }
    std::uint64_t limit_bytes() const noexcept { return limit_bytes_.load(std::memory_order_relaxed); }
    /// Takes effect at the next sweep.
    void set_limit_bytes(std::uint64_t bytes) noexcept {
        limit_bytes_.store(bytes, std::memory_order_relaxed);
    }

  private:
    bool is_kept() const noexcept { return !directory_.path().empty(); }
    void warn_once(const std::string& problem);

    const CachePlace place_;
    CacheDirectory directory_;  // without a path if the place has a problem
    WarningHandler warn_;
    const std::string limit_problem_;
    std::atomic<std::uint64_t> limit_bytes_;
    std::atomic<bool> warned_{false};
    std::atomic<bool> warned_of_limit_{false};
};

}  // namespace bascule
