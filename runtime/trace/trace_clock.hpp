// The clock of traces.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace bascule {

/// An offset of the trace clock, for tests of long traces.
inline std::atomic<std::int64_t> trace_clock_advance{0};

/// The time in nanoseconds that all times of a trace use: CLOCK_MONOTONIC.
inline std::int64_t trace_now() noexcept {
    const std::int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                                 std::chrono::steady_clock::now().time_since_epoch())
                                 .count();
    return now + trace_clock_advance.load(std::memory_order_relaxed);
}

/// A time interval on the clock of trace_now().
struct TraceSpan {
    std::int64_t begin = 0;
    std::int64_t end = 0;
};

}  // namespace bascule
