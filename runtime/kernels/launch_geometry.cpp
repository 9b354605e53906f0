#include <algorithm>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/runtime/kernels/launch_geometry.hpp>

namespace bascule {
namespace {

std::uint32_t power_of_two_up_to(std::uint64_t limit) noexcept {
    std::uint32_t power = 1;
    while (std::uint64_t{power} * 2 <= limit) power *= 2;
    return power;
}

/// The smallest power of two that holds `extent`, at most `most`.
std::uint32_t side(std::uint64_t extent, std::uint32_t most) noexcept {
    std::uint32_t power = 1;
    while (power < extent && std::uint64_t{power} * 2 <= most) power *= 2;
    return power;
}

/// One axis: all threads in it. Several: 32 along x, so that a warp reads neighbours, and 256 in all, so that
/// the tile's edges stay short.
Dim3 block_for(std::span<const std::uint64_t> work, std::uint32_t threads) noexcept {
    constexpr std::uint32_t warp = 32;
    constexpr std::uint32_t tile = 256;
    if (work.size() == 1) {
        const std::uint64_t warps = (work[0] + warp - 1) / warp;
        return {static_cast<std::uint32_t>(std::min<std::uint64_t>(threads, warps * warp)), 1, 1};
    }
    std::uint32_t left = power_of_two_up_to(std::min(threads, tile));
    Dim3 block;
    block.x = side(work[0], std::min(left, warp));
    left /= block.x;
    block.y = side(work[1], work.size() == 2 ? left : std::min<std::uint32_t>(left, 4));
    left /= block.y;
    if (work.size() > 2) block.z = side(work[2], left);
    return block;
}

std::uint32_t blocks_for(std::uint64_t work, std::uint32_t block, std::uint32_t most, char axis) {
    const std::uint64_t blocks = work / block + (work % block != 0 ? 1 : 0);
    if (blocks <= most) return static_cast<std::uint32_t>(blocks);
    reject_field(ErrorKind::value, "work",
                 "work of {} threads along {} needs {} blocks of {}, and a grid has at most {} there. Give "
                 "each thread more to do (bascule::grid_stride), or put the longest axis first.",
                 work, axis, blocks, block, most);
}

}  // namespace

LaunchConfig geometry_for(std::span<const std::uint64_t> work, std::uint32_t threads,
                          const LaunchLimits& limits, std::uint32_t shared_bytes) {
    if (work.empty() || work.size() > 3 || std::find(work.begin(), work.end(), 0) != work.end()) {
        reject_field(ErrorKind::value, "work",
                     "work must be one to three extents, each at least 1: with no work there is nothing to "
                     "launch.");
    }
    LaunchConfig config;
    config.shared_bytes = shared_bytes;
    config.block = block_for(work, threads);
    const Dim3& most = limits.grid;
    config.grid.x = blocks_for(work[0], config.block.x, most.x, 'x');
    if (work.size() > 1) config.grid.y = blocks_for(work[1], config.block.y, most.y, 'y');
    if (work.size() > 2) config.grid.z = blocks_for(work[2], config.block.z, most.z, 'z');
    return config;
}

}  // namespace bascule
