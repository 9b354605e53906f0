// The clock of traces.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>

namespace bascule {

/// An offset of the trace clock, for tests of long traces.
inline std::atomic<std::int64_t> trace_clock_advance{0};

/// The time in nanoseconds that all times of a trace use: CLOCK_MONOTONIC.
inline std::int64_t trace_now() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec + trace_clock_advance.load(std::memory_order_relaxed);
}

/// A time interval on the clock of trace_now().
struct TraceSpan {
    std::int64_t begin = 0;
    std::int64_t end = 0;
};

}  // namespace bascule
