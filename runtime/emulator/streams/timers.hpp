// Records when operations run, by numbers that the client chooses.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "streams/scheduler.hpp"

namespace emulated::streams {

/// Thread-safe. Times are kept until they are taken.
class Timers {
  public:
    struct Span {
        Clock::time_point begin, end;
    };

    static Timers& get();

    /// The number for the calling thread's next operation; 0 if its times are not recorded.
    static std::uint64_t& next() noexcept;

    /// Wraps `work` to record when it runs. Several works with one number count as one operation, from the first begin to
    /// the last end.
    std::function<void()> timed(std::uint64_t number, std::function<void()> work);
    /// Takes the times of the operation with this number; nothing if it has not run.
    std::optional<Span> take(std::uint64_t number);

  private:
    void add(std::uint64_t number, Span span);

    std::mutex mutex_;
    std::unordered_map<std::uint64_t, Span> spans_;
};

}  // namespace emulated::streams
