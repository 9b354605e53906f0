#include <atomic>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include <bascule/jit/cache/memory_cache.hpp>
#include <bascule/jit/process/compile_watch.hpp>
#include <bascule/jit/process/fork_safety.hpp>

namespace bascule {

/// One job that is running.
struct MemoryCache::Flight {
    std::promise<void> promise;
    std::shared_future<void> end = promise.get_future().share();
    std::atomic<std::thread::id> leader = std::this_thread::get_id();
    std::uint64_t generation = fork_generation();
};

MemoryCache::Entry MemoryCache::find(const CacheKey& key, const WantedHeaders& wanted) {
    std::vector<Entry> candidates;
    {
        const std::lock_guard lock(fork_safe_mutex());
        const auto known = entries_.find(key);
        if (known == entries_.end()) return {};
        if (known->second.front().headers == nullptr) return known->second.front();
        candidates = known->second;
    }
    for (const Entry& entry : candidates) {
        if (entry.headers == nullptr || wanted.accept(*entry.headers)) return entry;
    }
    return {};
}

void MemoryCache::keep(const CacheKey& key, Entry entry) {
    const std::lock_guard lock(fork_safe_mutex());
    std::vector<Entry>& entries = entries_[key];
    entries.insert(entries.begin(), std::move(entry));
    if (entries.size() > variants) entries.pop_back();
}

void MemoryCache::clear() {
    const std::lock_guard lock(fork_safe_mutex());
    entries_.clear();  // what is being made right now stays, so that its waiters are not lost
}

void MemoryCache::run_once(const CacheKey& key, const std::string& what, const std::shared_ptr<Job>& job) {
    const auto flight = std::make_shared<Flight>();
    if (const std::shared_ptr<Flight> other = join_or_start(key, flight)) {
        if (other->leader == std::this_thread::get_id()) return job->make();
        return wait_watched(what, other->end);
    }
    bool found = false;
    try {
        found = job->find();
    } catch (...) {
        land(key, flight, std::current_exception());
        throw;
    }
    if (found) return land(key, flight, nullptr);
    // The thread that runs it leads: this one, interrupted, may ask again before that begins.
    flight->leader = std::thread::id();
    run_watched(what, [this, key, flight, job] {
        flight->leader = std::this_thread::get_id();
        try {
            job->make();
        } catch (...) {
            land(key, flight, std::current_exception());
            throw;
        }
        land(key, flight, nullptr);
    });
}

std::shared_ptr<MemoryCache::Flight> MemoryCache::join_or_start(const CacheKey& key,
                                                                const std::shared_ptr<Flight>& own) {
    const std::lock_guard lock(fork_safe_mutex());
    std::shared_ptr<Flight>& running = flights_[key];
    // The leader of a flight that began before a fork is in the parent: no thread here will end it.
    if (running != nullptr && running->generation == fork_generation()) return running;
    running = own;
    return nullptr;
}

/// Forgotten before the others wake: a thread that asks after them tries again.
void MemoryCache::land(const CacheKey& key, const std::shared_ptr<Flight>& flight,
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
