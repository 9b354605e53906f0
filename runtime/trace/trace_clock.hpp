// The clock of traces.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace bascule {

/// How far the clock of traces is ahead, for tests of long ones.
inline std::atomic<std::int64_t> trace_clock_advance{0};

/// Nanoseconds of the clock that all times of a trace are of: CLOCK_MONOTONIC.
inline std::int64_t trace_now() noexcept {
    const std::int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                                 std::chrono::steady_clock::now().time_since_epoch())
                                 .count();
    return now + trace_clock_advance.load(std::memory_order_relaxed);
}

/// From when to when something happened, by trace_now().
struct TraceSpan {
    std::int64_t begin = 0;
    std::int64_t end = 0;
};

}  // namespace bascule
