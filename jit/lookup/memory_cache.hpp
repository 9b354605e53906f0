// Images in memory.
#pragma once

#include <unordered_map>
#include <vector>

#include <bascule/jit/lookup/cache_entry.hpp>

namespace bascule {

/// Thread-safe. Holds no lock while it checks headers.
class MemoryCache {
  public:
    /// The image of `key` for the headers as they are now; the image is null if it is not found.
    CacheEntry find(const CacheKey& key, const WantedHeaders& wanted);
    /// Adds a header state of `key`; replaces the oldest if all places are taken.
    void keep(const CacheKey& key, CacheEntry entry);
    void clear();

  private:
    std::unordered_map<CacheKey, std::vector<CacheEntry>, CacheKeyHash>
        entries_;  // guarded by fork_safe_mutex()
};

}  // namespace bascule
