// When operations run: the policies and how people name them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace emulated::streams {

/// When operations run.
enum class Policy : std::uint8_t {
    eager,    ///< in the call that issues them
    lazy,     ///< when a synchronising call or a query forces them, and nothing more than that needs
    threads,  ///< in threads of their own, as soon as what they come after is done
    random,   ///< as under `lazy`, but a forced one lets others go first, in an order that a seed decides
};

struct Schedule {
    Policy policy = Policy::eager;
    std::uint64_t seed = 0;  ///< of `random`
};

/// What a text names: eager, lazy, threads, random:<seed>. Nothing for any other text.
std::optional<Schedule> schedule_from(std::string_view text) noexcept;

/// The texts that schedule_from knows, for messages.
inline constexpr const char* schedule_names = "eager, lazy, threads, random:<seed>";

}  // namespace emulated::streams
