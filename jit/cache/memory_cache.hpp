// Images in memory.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include <bascule/jit/cache/cache_key.hpp>
#include <bascule/jit/compile/image.hpp>
#include <bascule/jit/headers/header_manifest.hpp>

namespace bascule {

/// Thread-safe. No lock is held while headers are looked at.
class MemoryCache {
  public:
    /// How many header states of one program are kept.
    static constexpr std::size_t variants = 8;

    /// An image and the headers that it was made from.
    struct Entry {
        std::shared_ptr<const Image> image;
        std::shared_ptr<const HeaderManifest> headers;  ///< null: it was made from none
    };

    /// The image of `key` that was made from such headers; without an image when there is none.
    Entry find(const CacheKey& key, const WantedHeaders& wanted);
    /// Another header state of `key`; the oldest gives way.
    void keep(const CacheKey& key, Entry entry);
    void clear();

  private:
    std::unordered_map<CacheKey, std::vector<Entry>, CacheKeyHash> entries_;  // guarded by fork_safe_mutex()
};

}  // namespace bascule
