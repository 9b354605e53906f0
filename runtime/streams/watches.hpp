// Flags for extra work at every launch. They are one word, so that a launch tests all of them at once.
#pragma once

#include <atomic>

namespace bascule {

enum class Watch : unsigned {
    synchronise = 1,  ///< the host waits for each launch: launch_history.hpp
    record = 2,       ///< a trace is being recorded: recorder.hpp
    ranges = 4,       ///< a profiler is told what runs: traced_call.hpp
    hooks = 8,        ///< a function of the program is called for each launch: launch_hooks.hpp
};

namespace detail {
inline std::atomic<unsigned> watches{0};
}

inline bool watches_anything() noexcept { return detail::watches.load(std::memory_order_relaxed) != 0; }

inline bool watches(Watch which) noexcept {
    return (detail::watches.load(std::memory_order_relaxed) & static_cast<unsigned>(which)) != 0;
}

/// Sets or clears a flag for the whole process. Returns the previous state.
inline bool set_watch(Watch which, bool on) noexcept {
    const auto bit = static_cast<unsigned>(which);
    return ((on ? detail::watches.fetch_or(bit) : detail::watches.fetch_and(~bit)) & bit) != 0;
}

}  // namespace bascule
