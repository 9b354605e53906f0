// Grid and block from an amount of work.
#pragma once

#include <cstdint>
#include <span>

#include <bascule/interface/arguments/launch_config.hpp>

namespace bascule {

/// A block of at most `threads` threads, and the grid that gives `work` threads; `work` is (x, y, z) in
/// threads. Throws: ArgumentError for no work, and for more than a grid can have.
LaunchConfig geometry_for(std::span<const std::uint64_t> work, std::uint32_t threads,
                          const LaunchLimits& limits, std::uint32_t shared_bytes);

}  // namespace bascule
