// Policies that determine when operations run, and their names.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace emulated::streams {

/// When operations run.
enum class Policy : std::uint8_t {
    eager,    ///< in the call that issues them
    lazy,     ///< when a synchronising call or a query forces them, and only those needed for it
    threads,  ///< in worker threads, as soon as the operations before them are done
    random,  ///< as `lazy`, but whenever operations are issued or forced, any ready ones may run, chosen by a seed
};

struct Schedule {
    Policy policy = Policy::eager;
    std::uint64_t seed = 0;  ///< of `random`
};

/// Parses eager, lazy, threads or random:<seed>. Returns nothing for other texts.
std::optional<Schedule> schedule_from(std::string_view text) noexcept;

/// The accepted texts, for messages.
inline constexpr const char* schedule_names = "eager, lazy, threads, random:<seed>";

}  // namespace emulated::streams
