// Images in memory.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include <bascule/jit/compile/image.hpp>
#include <bascule/jit/headers/header_manifest.hpp>
#include <bascule/jit/lookup/cache_key.hpp>

namespace bascule {

/// Thread-safe. Holds no lock while it checks headers.
class MemoryCache {
  public:
    /// An image and the headers that it was made from.
    struct Entry {
        std::shared_ptr<const Image> image;
        std::shared_ptr<const HeaderManifest> headers;  ///< null: it was made without headers
    };

    /// The image of `key` for the headers as they are now; the image is null if it is not found.
    Entry find(const CacheKey& key, const WantedHeaders& wanted);
    /// Adds a header state of `key`; replaces the oldest if all places are taken.
    void keep(const CacheKey& key, Entry entry);
    void clear();

  private:
    std::unordered_map<CacheKey, std::vector<Entry>, CacheKeyHash> entries_;  // guarded by fork_safe_mutex()
};

}  // namespace bascule
