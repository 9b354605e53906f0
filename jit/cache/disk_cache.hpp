// Images on disk: found by key, verified before they are believed, replaced when they do not verify, and removed when
// they have not been used for longest.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <bascule/jit/cache/cache_directory.hpp>
#include <bascule/jit/cache/cache_entry.hpp>
#include <bascule/jit/cache/cache_sweep.hpp>

namespace bascule {

/// Makes programs faster and never fails one: whatever is wrong with the directory or an entry is a miss, and
/// is reported once. Thread-safe; holds no lock.
class DiskCache {
  public:
    /// How many header states of one program are kept: a header that is put back is a hit again.
    static constexpr int variants = 8;
    /// Gets one sentence, at most once per cache.
    using WarningHandler = std::function<void(const std::string&)>;

    /// A place without a path, or with a problem: nothing is found and nothing is kept.
    DiskCache(CachePlace place, WarningHandler warn, CacheLimit limit = {});

    /// What a key's search came to.
    struct Found {
        CacheEntry entry;  ///< without an image: none was found
        int place = 0;     ///< where to store an image that was not found: a free place, or the oldest
    };
    /// The entry of `key` that was made from such headers. Notes that it was used, at most once an hour.
    Found load(const CacheKey& key, const WantedHeaders& wanted);
    /// The right to compile `key` among the processes that use the directory, so that others wait for what this one
    /// stores, as long as it goes on. Nothing after half a minute where it is stopped: then two processes compile the same.
    std::optional<CacheDirectory::Lock> lock(const CacheKey& key) const;
    /// Why `load` found nothing, for the log; see miss_reason.hpp.
    std::string why_missing(const CacheKey& key, const std::string& source_directory) const;
    /// At the place that `load` named; not what is larger than the limit by itself.
    void store(const CacheKey& key, int place, const HeaderManifest& headers, const Image& image);
    /// What keeps the directory within the limit, at most once an hour: called after a store, without a lock.
    void sweep_if_due();

    // For people, at any time. A problem is one that keeps the directory from being read or changed; a directory
    // that is not there is empty.

    struct Listed {
        std::string name;  ///< of the file
        std::uint64_t bytes = 0;
        std::int64_t used_ns = 0;  ///< since 1970, to the hour
        EntryDescription description;
    };
    /// Every entry, read and verified, most recently used first.
    std::vector<Listed> list(std::optional<std::string>& problem) const;
    /// The bytes of one entry; nothing when there is none of this name, or it cannot be trusted.
    std::optional<std::string> bytes_of(const std::string& name) const;
    /// Keeps an entry that `bytes_of` gave, here or on another machine: true when it is kept now, false when it was
    /// already here or there is no place for another header state.
    bool adopt(std::string_view bytes, std::optional<std::string>& problem);
    /// Sweeps now, down to the limit.
    Removed sweep() const;
    /// Every entry, and what killed processes left.
    Removed remove_all() const;

    const std::string& directory() const noexcept { return place_.path; }
    std::uint64_t limit_bytes() const noexcept { return limit_bytes_.load(std::memory_order_relaxed); }
    /// Holds from the next sweep on.
    void set_limit_bytes(std::uint64_t bytes) noexcept {
        limit_bytes_.store(bytes, std::memory_order_relaxed);
    }

  private:
    bool is_kept() const noexcept { return !directory_.path().empty(); }
    void warn_once(const std::string& problem);

    const CachePlace place_;
    CacheDirectory directory_;  // without a path where the place has a problem
    WarningHandler warn_;
    const std::string limit_problem_;
    std::atomic<std::uint64_t> limit_bytes_;
    std::atomic<bool> warned_{false};
    std::atomic<bool> warned_of_limit_{false};
};

}  // namespace bascule
