// The clock of traces.
#pragma once

#include <chrono>
#include <cstdint>

namespace bascule {

/// Nanoseconds of the clock that all times of a trace are of: CLOCK_MONOTONIC.
inline std::int64_t trace_now() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/// From when to when something happened, by trace_now().
struct TraceSpan {
    std::int64_t begin = 0;
    std::int64_t end = 0;
};

}  // namespace bascule
