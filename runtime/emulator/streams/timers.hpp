// When operations run, for the program that asks by numbers of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "streams/scheduler.hpp"

namespace emulated::streams {

/// Thread-safe. What is not taken is kept.
class Timers {
  public:
    struct Span {
        Clock::time_point begin, end;
    };

    static Timers& get();

    /// The number for the calling thread's next operation; 0: none.
    static std::uint64_t& next() noexcept;

    /// `work` that keeps when it runs. Several works of one number are one operation, from the first begin to the last end.
    std::function<void()> timed(std::uint64_t number, std::function<void()> work);
    /// Nothing where it has not run.
    std::optional<Span> take(std::uint64_t number);

  private:
    void add(std::uint64_t number, Span span);

    std::mutex mutex_;
    std::unordered_map<std::uint64_t, Span> spans_;
};

}  // namespace emulated::streams
