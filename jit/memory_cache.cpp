#include <bascule/jit/memory_cache.hpp>

namespace bascule {

MemoryCache::Outcome MemoryCache::once(const CacheKey& key, const std::function<ImagePointer()>& make) {
    std::promise<ImagePointer> promise;
    {
        std::unique_lock lock(mutex_);
        const auto known = images_.find(key);
        if (known != images_.end()) {
            const std::shared_future<ImagePointer> future = known->second;
            lock.unlock();
            return {future.get(), false};
        }
        images_.emplace(key, promise.get_future().share());
    }
    try {
        ImagePointer image = make();
        promise.set_value(image);
        return {std::move(image), true};
    } catch (...) {
        {
            const std::lock_guard lock(mutex_);
            images_.erase(key);
        }
        promise.set_exception(std::current_exception());
        throw;
    }
}

void MemoryCache::clear() {
    const std::lock_guard lock(mutex_);
    // What is being made right now stays, so that its waiters are not lost.
    std::erase_if(images_, [](const auto& entry) {
        return entry.second.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    });
}

}  // namespace bascule
