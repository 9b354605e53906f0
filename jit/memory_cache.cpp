#include <exception>
#include <utility>

#include <bascule/jit/memory_cache.hpp>

namespace bascule {

MemoryCache::Outcome MemoryCache::once(const CacheKey& key, const std::function<ImagePointer()>& make) {
    std::promise<ImagePointer> promise;
    {
        std::unique_lock lock(mutex_);
        const auto known = images_.find(key);
        if (known != images_.end()) {
            const Entry entry = known->second;
            lock.unlock();
            if (!entry.made && entry.maker == std::this_thread::get_id()) return {make(), true};
            return {entry.image.get(), false};
        }
        images_.emplace(key, Entry{promise.get_future().share(), std::this_thread::get_id(), false});
    }
    try {
        ImagePointer image = make();
        {
            const std::lock_guard lock(mutex_);
            images_.find(key)->second.made = true;
        }
        promise.set_value(image);
        return {std::move(image), true};
    } catch (...) {
        // Forgotten before the others wake: whoever asks after them tries again.
        {
            const std::lock_guard lock(mutex_);
            images_.erase(key);
        }
        promise.set_exception(std::current_exception());
        throw;
    }
}

void MemoryCache::forget(const CacheKey& key) {
    const std::lock_guard lock(mutex_);
    const auto known = images_.find(key);
    if (known != images_.end() && known->second.made) images_.erase(known);
}

void MemoryCache::clear() {
    const std::lock_guard lock(mutex_);
    // What is being made right now stays, so that its waiters are not lost.
    std::erase_if(images_, [](const auto& entry) { return entry.second.made; });
}

}  // namespace bascule
