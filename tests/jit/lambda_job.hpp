// A job of the memory cache, from two functions.
#pragma once

#include <functional>
#include <utility>

#include <bascule/jit/cache/memory_cache.hpp>

namespace bascule::testing {

class LambdaJob final : public MemoryCache::Job {
  public:
    LambdaJob(std::function<bool()> find, std::function<void()> make)
        : find_(std::move(find)), make_(std::move(make)) {}
    bool find() override { return find_(); }
    void make() override { make_(); }

  private:
    std::function<bool()> find_;
    std::function<void()> make_;
};

}  // namespace bascule::testing
