// Images on disk: found by key, verified before they are believed, replaced when they do not verify.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include <bascule/jit/cache/cache_directory.hpp>
#include <bascule/jit/cache/cache_entry.hpp>

namespace bascule {

/// Makes programs faster and never fails one: whatever is wrong with the directory or an entry is a miss, and
/// is reported once. Thread-safe; holds no lock.
class DiskCache {
  public:
    /// How many header states of one program are kept: a header that is put back is a hit again.
    static constexpr int variants = 8;
    /// Gets one sentence, at most once per cache.
    using WarningHandler = std::function<void(const std::string&)>;

    /// `directory` empty: nothing is found and nothing is kept.
    DiskCache(std::string directory, WarningHandler warn);

    /// What a key's search came to.
    struct Found {
        CacheEntry entry;  ///< without an image: none was found
        int place = 0;     ///< where to store an image that was not found: a free place, or the oldest
    };
    /// The entry of `key` whose headers are as they are here and now.
    Found load(const CacheKey& key, const std::string& source_directory);
    /// At the place that `load` named.
    void store(const CacheKey& key, int place, const HeaderManifest& headers, const Image& image);

    const std::string& directory() const noexcept { return directory_.path(); }

  private:
    void warn_once(const std::string& problem);

    CacheDirectory directory_;
    WarningHandler warn_;
    std::atomic<bool> warned_{false};
};

}  // namespace bascule
