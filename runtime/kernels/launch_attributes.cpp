#include <fmt/format.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/runtime/kernels/launch_attributes.hpp>
#include <bascule/runtime/kernels/occupancy.hpp>
#include <bascule/runtime/streams/stream.hpp>

namespace bascule {
namespace {

[[noreturn]] void fail_unable(const char* field, const char* what, Device device) {
    if (device.emulated()) {
        reject_field(
            ErrorKind::not_supported, field,
            "`{}`: the emulated device has no {}. Leave it out, or run on a GPU of compute capability "
            "9.0 or newer (BASCULE_DEVICE=cuda).",
            field, what);
    }
    reject_field(ErrorKind::not_supported, field,
                 "`{}`: device {} ({}, {}) has no {}; GPUs of compute capability 9.0 or newer have. Leave it "
                 "out.",
                 field, device.ordinal(), device.name(), to_string(device.arch()), what);
}

void check_cooperative(const LaunchConfig& config, const LoadedKernel& kernel, Device device) {
    const auto threads = static_cast<std::uint32_t>(config.block.count());
    const std::uint64_t each = occupancy_of(kernel, device, threads, config.shared_bytes).blocks;
    const std::uint64_t fitting = each * static_cast<std::uint64_t>(device.multiprocessors());
    if (config.grid.count() <= fitting) return;
    reject_field(ErrorKind::value, "grid",
                 "`grid` is {}: a cooperative launch needs all of its {} blocks on the device at once, and "
                 "{} fit: {} of {} threads and {} bytes of dynamic shared memory on each of {} "
                 "multiprocessors. Launch at most {} blocks and let each do more, or make blocks smaller.",
                 to_string(config.grid), config.grid.count(), fitting, each, threads, config.shared_bytes,
                 device.multiprocessors(), fitting);
}

void check_priority(Device device, int priority) {
    const PriorityRange range = priorities_of(device);
    if (priority >= range.most_urgent && priority <= range.least_urgent) return;
    reject_field(ErrorKind::value, "priority", "`priority` is {}: this device takes {} (most urgent) to {}.",
                 priority, range.most_urgent, range.least_urgent);
}

/// The cluster size that all GPUs with clusters support.
constexpr std::uint64_t portable_cluster_blocks = 8;

/// Ignores errors: if the driver refuses this, it refuses the launch too and says so.
void allow_large_clusters(const LoadedKernel& kernel, Device device) {
    const auto set = Driver::get().api().cuKernelSetAttribute;
    set(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1, kernel.native, device.ordinal());
}

}  // namespace

void check_attributes(const LaunchConfig& config, const LoadedKernel& kernel, Device device) {
    // Programmatic launch has no device attribute of its own. It was introduced with clusters.
    const auto has_clusters = [&] {
        return Driver::get().attribute_of(device.ordinal(), CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) != 0;
    };
    if (config.cluster.count() != 1 && !has_clusters()) fail_unable("cluster", "clusters of blocks", device);
    if (config.cluster.count() > portable_cluster_blocks) allow_large_clusters(kernel, device);
    if (config.programmatic && !has_clusters())
        fail_unable("programmatic", "programmatic dependent launch", device);
    if (config.priority) check_priority(device, *config.priority);
    if (config.cooperative) check_cooperative(config, kernel, device);
}

unsigned int to_native(const LaunchConfig& config, LaunchAttributes& attributes) noexcept {
    unsigned int count = 0;
    const auto add = [&](CUlaunchAttributeID id) -> CUlaunchAttributeValue& {
        CUlaunchAttribute& attribute = attributes.at(count++);
        attribute = {};
        attribute.id = id;
        return attribute.value;
    };
    if (config.cooperative) add(CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative = 1;
    if (config.programmatic) {
        add(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION).programmaticStreamSerializationAllowed = 1;
    }
    if (config.priority) add(CU_LAUNCH_ATTRIBUTE_PRIORITY).priority = *config.priority;
    if (config.cluster.count() != 1) {
        auto& cluster = add(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim;
        cluster.x = config.cluster.x;
        cluster.y = config.cluster.y;
        cluster.z = config.cluster.z;
    }
#if CUDA_VERSION >= 12050
    if (config.shared_carveout) {
        add(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT).sharedMemCarveout =
            static_cast<unsigned int>(*config.shared_carveout);
    }
#endif
    return count;
}

void explain_refusal(CUresult code, const LaunchConfig& config, const LoadedKernel& kernel) {
    if (code == CUDA_ERROR_INVALID_CLUSTER_SIZE && config.cluster.count() == 1) {
        reject_field(
            ErrorKind::value, "grid",
            "`grid` is {}: kernel '{}' declares its clusters (__cluster_dims__), and the driver takes no grid "
            "whose extents they do not divide. Make the grid a multiple of them. Give `cluster` too where the "
            "declaration leaves its size open, or has more than 8 blocks.",
            to_string(config.grid), kernel.image->name);
    }
    if (code == CUDA_ERROR_INVALID_CLUSTER_SIZE ||
        (config.cluster.count() != 1 && code == CUDA_ERROR_INVALID_VALUE)) {
        reject_field(
            ErrorKind::value, "cluster",
            "`cluster` is {}: the driver takes no clusters of {} blocks of {} threads of kernel "
            "'{}'. Eight blocks are what every such GPU takes, and some take 16 of small blocks; make "
            "the cluster, the block or its shared memory smaller.",
            to_string(config.cluster), config.cluster.count(), config.block.count(), kernel.image->name);
    }
    if (code == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE) {
        reject_field(
            ErrorKind::value, "grid",
            "`grid` is {}: a cooperative launch needs all of its blocks on the device at once, and {}. "
            "Launch fewer blocks and let each do more, or make {} smaller.",
            to_string(config.grid),
            config.cluster.count() == 1
                ? "the driver finds no room for them"
                : fmt::format("clusters of {} blocks, each of which stays within a part of the device, "
                              "leave room for fewer of them",
                              config.cluster.count()),
            config.cluster.count() == 1 ? "the blocks" : "the clusters");
    }
    if (code == CUDA_ERROR_NOT_SUPPORTED && (config.programmatic || config.cluster.count() != 1)) {
        const char* field = config.programmatic ? "programmatic" : "cluster";
        reject_field(ErrorKind::not_supported, field,
                     "`{}`: the driver does not support this launch attribute on this device. Leave it out.",
                     field);
    }
}

}  // namespace bascule
