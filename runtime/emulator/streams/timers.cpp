#include "streams/timers.hpp"

#include <algorithm>
#include <utility>

namespace emulated::streams {

Timers& Timers::get() {
    static auto* timers = new Timers;  // not destroyed, because operations may run until the very end
    return *timers;
}

std::uint64_t& Timers::next() noexcept {
    thread_local constinit std::uint64_t number = 0;
    return number;
}

std::function<void()> Timers::timed(std::uint64_t number, std::function<void()> work) {
    return [this, number, run = std::move(work)] {
        const Clock::time_point begin = Clock::now();
        run();
        add(number, {begin, Clock::now()});
    };
}

void Timers::add(std::uint64_t number, Span span) {
    const std::lock_guard lock(mutex_);
    const auto [known, is_first] = spans_.try_emplace(number, span);
    if (is_first) return;
    known->second.begin = std::min(known->second.begin, span.begin);
    known->second.end = std::max(known->second.end, span.end);
}

std::optional<Timers::Span> Timers::take(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    const auto known = spans_.extract(number);
    return known ? std::optional(known.mapped()) : std::nullopt;
}

}  // namespace emulated::streams
