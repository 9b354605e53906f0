#include <fmt/format.h>

#include <bascule/interface/arguments/launch_config.hpp>
#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/wording.hpp>

namespace bascule {
namespace {

[[noreturn]] void fail_config(const char* field, const std::string& why) {
    reject_field(ErrorKind::value, field, "`{}` {}.", field, why);
}

[[noreturn]] void fail_beyond(const char* field, std::int64_t given) {
    fail_config(field, fmt::format("has {}, which is {}", given,
                                   given < 0 ? "below 0" : "above the limit of every device"));
}

void check_extents(const char* field, const char* unit, Dim3 extents, Dim3 limit) {
    if (extents.beyond != 0) fail_beyond(field, extents.beyond);
    const std::uint32_t given[] = {extents.x, extents.y, extents.z};
    const std::uint32_t most[] = {limit.x, limit.y, limit.z};
    for (int d = 0; d < 3; ++d) {
        if (given[d] == 0) {
            fail_config(
                field,
                fmt::format("is {}: every extent must be at least 1. For a launch over no work use forall(0)",
                            to_string(extents)));
        }
        if (given[d] > most[d]) {
            fail_config(field, fmt::format("is {}: {} {} in {} are too many, this device takes {}",
                                           to_string(extents), given[d], unit, "xyz"[d], most[d]));
        }
    }
}

/// The reason why the kernel takes fewer threads per block than the device, as the end of a message. Empty if it does
/// not.
std::string reason(const LaunchLimits& limits) {
    if (limits.threads >= limits.device_threads) return "";
    // One more warp would exceed the registers of a block.
    if (std::uint64_t{limits.registers} * (limits.threads + 32) > limits.device_registers) {
        return with_options(
            fmt::format(": each thread uses {} registers, and a block has {}. Launch fewer threads a block; "
                        "or compile with CompileOptions(max_registers={}) or __launch_bounds__({}), and what "
                        "is beyond goes to memory",
                        limits.registers, limits.device_registers,
                        limits.device_registers / limits.device_threads / 8 * 8, limits.device_threads));
    }
    return fmt::format(": its text declares __launch_bounds__({}). Launch at most that many, or declare more",
                       limits.threads);
}

void check_attributes(const LaunchConfig& config) {
    const std::uint32_t grid[] = {config.grid.x, config.grid.y, config.grid.z};
    const std::uint32_t cluster[] = {config.cluster.x, config.cluster.y, config.cluster.z};
    for (int d = 0; d < 3; ++d) {
        if (cluster[d] == 0)
            fail_config("cluster",
                        fmt::format("is {}: every extent must be at least 1", to_string(config.cluster)));
        if (grid[d] % cluster[d] != 0) {
            fail_config("cluster", fmt::format("is {}: the grid {} has {} blocks in {}, which clusters of {} "
                                               "do not divide. Make the grid a multiple of the cluster",
                                               to_string(config.cluster), to_string(config.grid), grid[d],
                                               "xyz"[d], cluster[d]));
        }
    }
    if (config.shared_carveout && (*config.shared_carveout < 0 || *config.shared_carveout > 100)) {
        fail_config("shared_carveout",
                    fmt::format("is {}: it is a percentage, from 0 (as much cache as can be) to 100 (as much "
                                "shared memory)",
                                *config.shared_carveout));
    }
}

}  // namespace

void check(const LaunchConfig& config, const LaunchLimits& limits) {
    check_extents("grid", "blocks", config.grid, limits.grid);
    check_extents("block", "threads", config.block, limits.block);
    if (config.block.count() > limits.threads) {
        fail_config(
            "block",
            fmt::format("is {}: {} threads are too many, a block of this kernel takes {} on this device{}",
                        to_string(config.block), config.block.count(), limits.threads, reason(limits)));
    }
    if (config.shared_bytes.beyond != 0) fail_beyond("shared_bytes", config.shared_bytes.beyond);
    if (config.shared_bytes > limits.shared_bytes) {
        const std::uint32_t own = limits.static_shared_bytes;
        fail_config(
            "shared_bytes",
            fmt::format(
                "is {}: a block of this kernel can have {} bytes of dynamic shared memory on this device{}",
                config.shared_bytes.value, limits.shared_bytes,
                own == 0 ? "" : fmt::format(", besides the {} that it declares itself", own)));
    }
    if (config.has_attributes()) check_attributes(config);
}

std::string to_string(Dim3 extents) {
    if (extents.z != 1) return fmt::format("({}, {}, {})", extents.x, extents.y, extents.z);
    if (extents.y != 1) return fmt::format("({}, {})", extents.x, extents.y);
    return fmt::format("({},)", extents.x);
}

}  // namespace bascule
