// Images in memory, each made once however many ask at the same time.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

#include <bascule/jit/cache_key.hpp>
#include <bascule/jit/image.hpp>

namespace bascule {

/// Thread-safe. No lock is held while an image is made.
class MemoryCache {
  public:
    using ImagePointer = std::shared_ptr<const Image>;

    struct Outcome {
        ImagePointer image;
        bool made_here =
            false;  ///< by this call; otherwise it was there, or another thread made it meanwhile
    };

    /// The image of `key`; the first to ask runs `make`, the others wait for it and share its outcome, an
    /// exception too. Exceptions are not kept: the next call tries again. A `make` that asks for its own key
    /// makes it twice instead of waiting for itself.
    Outcome once(const CacheKey& key, const std::function<ImagePointer()>& make);

    /// The next call makes it again; who has the image keeps it.
    void forget(const CacheKey& key);
    void clear();

  private:
    struct Entry {
        std::shared_future<ImagePointer> image;
        std::thread::id maker;
        bool made = false;
    };
    std::mutex mutex_;
    std::unordered_map<CacheKey, Entry, CacheKeyHash> images_;
};

}  // namespace bascule
