// Images in memory. If several threads want the same program compiled, one of them compiles it.
#pragma once

#include <exception>
#include <functional>
#include <unordered_map>

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

/// Thread-safe. Must outlive the work, which may go on after an interrupted wait.
class SingleFlight {
  public:
    /// Runs `work` like run_watched (jit/process/compile_thread), unless another thread runs work for the same key: then
    /// waits for that work to end, and throws its exception if it threw. `what`: names the work for users. Work that asks
    /// for its own key runs at once, because it would wait for itself. Throws: what the work throws; CompileInterrupted.
    void run(const CacheKey& key, const std::string& what, const std::function<void()>& work);

  private:
    struct Flight;
    /// Returns the work in progress for `key`. If no thread works on it, registers `own` and returns null.
    std::shared_ptr<Flight> join_or_start(const CacheKey& key, const std::shared_ptr<Flight>& own);
    void land(const CacheKey& key, const std::shared_ptr<Flight>& flight, std::exception_ptr failure);

    // Guarded by fork_safe_mutex().
    std::unordered_map<CacheKey, std::shared_ptr<Flight>, CacheKeyHash> flights_;
};

}  // namespace bascule
