// Images in memory, each made once however many ask at the same time.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include <bascule/jit/cache/cache_key.hpp>
#include <bascule/jit/compile/image.hpp>
#include <bascule/jit/headers/header_manifest.hpp>

namespace bascule {

/// Thread-safe. No lock is held while an image is made or headers are looked at.
class MemoryCache {
  public:
    /// How many header states of one program are kept.
    static constexpr std::size_t variants = 8;

    /// An image and the headers that it was made from.
    struct Entry {
        std::shared_ptr<const Image> image;
        std::shared_ptr<const HeaderManifest> headers;  ///< null: it was made from none
    };

    /// The image of `key` whose headers are as they are here and now, or null.
    std::shared_ptr<const Image> find(const CacheKey& key, const std::string& source_directory);
    /// Another header state of `key`; the oldest gives way.
    void keep(const CacheKey& key, Entry entry);
    void clear();

    /// Runs `make` unless another thread is running it for the same key: then waits for that one to end, and
    /// gets its exception if it threw. True when it ran here. A `make` that asks for its own key runs it
    /// again instead of waiting for itself.
    bool run_once(const CacheKey& key, const std::function<void()>& make);

  private:
    struct Flight;
    void land(const CacheKey& key, const std::shared_ptr<Flight>& flight);

    // Both guarded by fork_safe_mutex().
    std::unordered_map<CacheKey, std::vector<Entry>, CacheKeyHash> entries_;
    std::unordered_map<CacheKey, std::shared_ptr<Flight>, CacheKeyHash> flights_;
};

}  // namespace bascule
