#include "streams/schedule.hpp"

#include <charconv>

namespace emulated::streams {

std::optional<Schedule> schedule_from(std::string_view text) noexcept {
    if (text == "eager") return Schedule{.policy = Policy::eager};
    if (text == "lazy") return Schedule{.policy = Policy::lazy};
    if (text == "threads") return Schedule{.policy = Policy::threads};
    static constexpr std::string_view prefix = "random:";
    if (!text.starts_with(prefix)) return std::nullopt;
    text.remove_prefix(prefix.size());
    Schedule schedule{.policy = Policy::random};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), schedule.seed);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    return whole ? std::optional(schedule) : std::nullopt;
}

}  // namespace emulated::streams
