#include <fmt/format.h>

#include <bascule/interface/error.hpp>
#include <bascule/interface/launch_config.hpp>

namespace bascule {
namespace {

[[noreturn]] void fail(const char* field, const std::string& why) {
    throw ArgumentError(ArgumentError::Kind::value, fmt::format("`{}` {}.", field, why), {.field = field});
}

void check_extents(const char* field, const char* unit, Dim3 extents, Dim3 limit) {
    const std::uint32_t given[] = {extents.x, extents.y, extents.z};
    const std::uint32_t most[] = {limit.x, limit.y, limit.z};
    for (int d = 0; d < 3; ++d) {
        if (given[d] == 0) {
            fail(field, fmt::format(
                            "is {}: every extent must be at least 1. For a launch over no work use forall(0)",
                            to_string(extents)));
        }
        if (given[d] > most[d]) {
            fail(field, fmt::format("is {}: {} {} in {} are too many, this device takes {}",
                                    to_string(extents), given[d], unit, "xyz"[d], most[d]));
        }
    }
}

}  // namespace

void check(const LaunchConfig& config, const LaunchLimits& limits) {
    check_extents("grid", "blocks", config.grid, limits.grid);
    check_extents("block", "threads", config.block, limits.block);
    if (config.block.count() > limits.threads) {
        fail("block",
             fmt::format("is {}: {} threads are too many, a block of this kernel takes {} on this device",
                         to_string(config.block), config.block.count(), limits.threads));
    }
    if (config.shared_bytes > limits.shared_bytes) {
        const std::uint32_t own = limits.static_shared_bytes;
        fail("shared_bytes",
             fmt::format(
                 "is {}: a block of this kernel can have {} bytes of dynamic shared memory on this device{}",
                 config.shared_bytes, limits.shared_bytes,
                 own == 0 ? "" : fmt::format(", beside the {} that it declares itself", own)));
    }
}

std::string to_string(Dim3 extents) {
    if (extents.z != 1) return fmt::format("({}, {}, {})", extents.x, extents.y, extents.z);
    if (extents.y != 1) return fmt::format("({}, {})", extents.x, extents.y);
    return fmt::format("({},)", extents.x);
}

}  // namespace bascule
