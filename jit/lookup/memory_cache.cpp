#include <mutex>
#include <utility>

#include <bascule/jit/lookup/memory_cache.hpp>
#include <bascule/jit/process/fork_safety.hpp>

namespace bascule {

CacheEntry MemoryCache::find(const CacheKey& key, const WantedHeaders& wanted) {
    std::vector<CacheEntry> candidates;
    {
        const std::lock_guard lock(fork_safe_mutex());
        const auto known = entries_.find(key);
        if (known == entries_.end()) return {};
        if (known->second.front().headers == nullptr) return known->second.front();
        candidates = known->second;
    }
    for (const CacheEntry& entry : candidates) {
        if (entry.headers == nullptr || wanted.accept(*entry.headers)) return entry;
    }
    return {};
}

void MemoryCache::keep(const CacheKey& key, CacheEntry entry) {
    const std::lock_guard lock(fork_safe_mutex());
    std::vector<CacheEntry>& entries = entries_[key];
    entries.insert(entries.begin(), std::move(entry));
    if (entries.size() > kept_header_states) entries.pop_back();
}

void MemoryCache::clear() {
    const std::lock_guard lock(fork_safe_mutex());
    entries_.clear();
}

}  // namespace bascule
