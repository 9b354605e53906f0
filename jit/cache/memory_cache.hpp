// Images in memory, each made once however many ask at the same time.
#pragma once

#include <exception>
#include <memory>
#include <string>
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

    /// The image of `key` that was made from such headers; without an image when there is none.
    Entry find(const CacheKey& key, const WantedHeaders& wanted);
    /// Another header state of `key`; the oldest gives way.
    void keep(const CacheKey& key, Entry entry);
    void clear();

    /// What is done for a key by one thread at a time.
    class Job {
      public:
        virtual ~Job() = default;
        /// In the thread that asks. True: there is nothing to make.
        virtual bool find() = 0;
        /// Compiles; as run_watched says (jit/process/compile_watch), maybe in a thread that goes on when its wait was
        /// it any more. The job owns what it uses, this cache too.
        virtual void make() = 0;
    };
    /// Runs the job unless another thread runs one for the same key: then waits for that one to end, and gets its exception
    /// if it threw. `what`: what is compiled, for people. A job that asks for its own key makes it again instead of waiting
    /// for itself. Throws: what the job throws; CompileInterrupted.
    void run_once(const CacheKey& key, const std::string& what, const std::shared_ptr<Job>& job);

  private:
    struct Flight;
    /// The flight that runs for `key`, or null, and then `own` runs.
    std::shared_ptr<Flight> join_or_start(const CacheKey& key, const std::shared_ptr<Flight>& own);
    void land(const CacheKey& key, const std::shared_ptr<Flight>& flight, std::exception_ptr failure);

    // Both guarded by fork_safe_mutex().
    std::unordered_map<CacheKey, std::vector<Entry>, CacheKeyHash> entries_;
    std::unordered_map<CacheKey, std::shared_ptr<Flight>, CacheKeyHash> flights_;
};

}  // namespace bascule
