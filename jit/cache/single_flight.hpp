// Of the threads that want one thing compiled, one compiles it.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include <bascule/jit/cache/cache_key.hpp>

namespace bascule {

/// Thread-safe. Its owner outlives the work, which may go on when the wait for it was interrupted.
class SingleFlight {
  public:
    /// Runs `work` as run_watched does (jit/process/compile_watch), unless another thread runs one for the same key: then waits
    /// for that one to end, and gets its exception if it threw. `what`: what is compiled, for people. Work that asks for
    /// its own key is run at once, because it would wait for itself. Throws: what the work throws; CompileInterrupted.
    void run(const CacheKey& key, const std::string& what, const std::function<void()>& work);

  private:
    struct Flight;
    /// The flight of another thread that runs for `key`, or null: then it is `own`.
    std::shared_ptr<Flight> join_or_start(const CacheKey& key, const std::shared_ptr<Flight>& own);
    void land(const CacheKey& key, const std::shared_ptr<Flight>& flight, std::exception_ptr failure);

    std::unordered_map<CacheKey, std::shared_ptr<Flight>, CacheKeyHash>
        flights_;  // guarded by fork_safe_mutex()
};

}  // namespace bascule
