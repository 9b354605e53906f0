#include <atomic>
#include <future>
#include <mutex>
#include <thread>

#include <bascule/jit/lookup/memory_cache.hpp>
#include <bascule/jit/process/compile_thread.hpp>
#include <bascule/jit/process/fork_and_exit.hpp>

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

/// One run of the work for a key.
struct SingleFlight::Flight {
    std::promise<void> promise;
    std::shared_future<void> end = promise.get_future().share();
    std::atomic<std::thread::id>
        worker{};  // no thread until the work begins; its caller may ask again before that
    std::uint64_t generation = fork_generation();
};

void SingleFlight::run(const CacheKey& key, const std::string& what, const std::function<void()>& work) {
    const auto flight = std::make_shared<Flight>();
    if (const std::shared_ptr<Flight> other = join_or_start(key, flight)) {
        if (other->worker == std::this_thread::get_id()) return work();
        return wait_watched(what, other->end);
    }
    run_watched(what, [this, key, flight, work] {
        flight->worker = std::this_thread::get_id();
        try {
            work();
        } catch (...) {
            land(key, flight, std::current_exception());
            throw;
        }
        land(key, flight, nullptr);
    });
}

std::shared_ptr<SingleFlight::Flight> SingleFlight::join_or_start(const CacheKey& key,
                                                                  const std::shared_ptr<Flight>& own) {
    const std::lock_guard lock(fork_safe_mutex());
    std::shared_ptr<Flight>& running = flights_[key];
    // If the run began before a fork, its thread exists in the parent only and will not end it here.
    if (running != nullptr && running->generation == fork_generation()) return running;
    running = own;
    return nullptr;
}

/// Removes the flight before the others wake, so that a thread that asks later starts a new one.
void SingleFlight::land(const CacheKey& key, const std::shared_ptr<Flight>& flight,
                        std::exception_ptr failure) {
    {
        const std::lock_guard lock(fork_safe_mutex());
        const auto running = flights_.find(key);
        if (running != flights_.end() && running->second == flight) flights_.erase(running);
    }
    if (failure) {
        flight->promise.set_exception(std::move(failure));
    } else {
        flight->promise.set_value();
    }
}

}  // namespace bascule
