// Fills register files before a warp runs: constants, parameters and special registers.
#include <algorithm>
#include <cstring>
#include <utility>

#include "machine/blocks/block.hpp"

namespace emulated::machine {
namespace {

using program::Code;
using program::Special;

// Reads a kernel parameter, sign-extended if its type is signed.
std::uint64_t parameter(const std::byte* at, ptx::Type type) {
    std::uint64_t value = 0;
    const unsigned bytes = ptx::bytes_of(type);
    std::memcpy(&value, at, bytes);
    if (bytes == 8 || !ptx::is_signed(type)) return value;
    const std::uint64_t sign = std::uint64_t{1} << (8 * bytes - 1);
    return (value ^ sign) - sign;
}

// Special registers by axis: the block's position in the cluster, the cluster's size, its position in the grid, and the
// grid's size in clusters.
std::uint32_t cluster_special(const LaunchRequest& request, const Dim3& block, Special special) {
    const Dim3 &size = request.cluster, &grid = request.grid;
    const Dim3 values[] = {place_in(size, block),
                           size,
                           {block.x / size.x, block.y / size.y, block.z / size.z},
                           {grid.x / size.x, grid.y / size.y, grid.z / size.z}};
    const unsigned at = static_cast<unsigned>(special) - static_cast<unsigned>(Special::cluster_ctaid_x);
    const Dim3& value = values[at / 3];
    return at % 3 == 0 ? value.x : at % 3 == 1 ? value.y : value.z;
}

// How long the value of a special register stays valid in a register file.
enum class Lifetime : std::uint8_t { launch, warp, block, none };

Lifetime lifetime_of(Special special) {
    if (special <= Special::tid_z || special == Special::warpid) return Lifetime::warp;
    const bool varies = (special >= Special::ctaid_x && special <= Special::ctaid_z) ||
                        (special >= Special::cluster_ctaid_x && special <= Special::cluster_ctarank);
    if (varies) return Lifetime::block;
    return special == Special::stack ? Lifetime::none : Lifetime::launch;  // the kernel changes its stack
}

}  // namespace

void Worker::place_threads() {
    placed_ = request_->block;
    const std::uint32_t count = static_cast<std::uint32_t>(32 * warps_.size());
    for (auto& axis : threads_) axis.resize(count);
    for (std::uint32_t t = 0; t < count; ++t) {
        const Dim3 thread = thread_of(t);
        threads_[0][t] = thread.x;
        threads_[1][t] = thread.y;
        threads_[2][t] = thread.z;
    }
}

// Fills constants and special registers. Values of the last launch that are still right are reused: the stack pointer
// is the only one that kernels write. `start` refills what changes within the launch.
void Worker::fill_registers() {
    const std::span<const Warp> files = std::span(warps_).first(files_);
    const Filled now{code_->serial,
                     files.front().registers,
                     files_,
                     request_->grid,
                     request_->block,
                     request_->cluster,
                     request_->workspace,
                     request_->dynamic_shared_bytes,
                     request_->explicit_cluster};
    const bool same = std::exchange(filled_, now) == now;
    if (!same) {
        for (const Code::SpecialSlot& slot : code_->specials) fill_special(slot, files);
    }
    filled_constants_.resize(code_->constants.size());
    for (std::size_t c = 0; c < filled_constants_.size(); ++c) {
        const Code::Constant& constant = code_->constants[c];
        std::uint64_t value = constant.value;
        if (constant.parameter != ptx::Type::none)
            value = parameter(request_->parameters + value, constant.parameter);
        if (constant.global >= 0) value += request_->globals[constant.global];
        if (std::exchange(filled_constants_[c], value) == value && same) continue;
        std::byte* first = files.front().registers + constant.offset;
        if (constant.bytes == 0) std::memcpy(first, &value, 4);
        for (std::size_t l = 0; l < 32; ++l) std::memcpy(first + l * constant.bytes, &value, constant.bytes);
        for (const Warp& warp : files.subspan(1))
            std::memcpy(warp.registers + constant.offset, first, std::max(32 * constant.bytes, 4u));
    }
}

void Worker::fill_special(const Code::SpecialSlot& slot, std::span<const Warp> warps) const {
    const auto lanes_of = [&](const Warp& warp) {
        return reinterpret_cast<std::uint32_t*>(warp.registers + slot.offset);
    };
    const auto all = [&](std::uint32_t value) {
        for (const Warp& warp : warps) std::fill_n(lanes_of(warp), 32, value);
    };
    const auto each = [&](auto&& value) {
        for (const Warp& warp : warps) {
            for (std::uint32_t l = 0; l < 32; ++l) lanes_of(warp)[l] = value(l);
        }
    };
    if (slot.special <= Special::nctaid_z) {  // the first twelve: tid, ntid, ctaid and nctaid by axis
        const unsigned axis = static_cast<unsigned>(slot.special) % 3;
        if (slot.special <= Special::tid_z) {
            for (const Warp& warp : warps)
                std::memcpy(lanes_of(warp), &threads_[axis][std::size_t{32} * warp.index], 128);
            return;
        }
        const Dim3& value = slot.special <= Special::ntid_z    ? request_->block
                            : slot.special <= Special::ctaid_z ? block_.index
                                                               : request_->grid;
        return all(axis == 0 ? value.x : axis == 1 ? value.y : value.z);
    }
    if (slot.special >= Special::cluster_ctaid_x && slot.special <= Special::nclusterid_z) {
        return all(cluster_special(*request_, block_.index, slot.special));
    }
    using S = Special;
    const auto is = [&](Special special) { return slot.special == special; };
    if (is(S::warpid)) {
        for (const Warp& warp : warps) std::fill_n(lanes_of(warp), 32, warp.index);
        return;
    }
    if (is(S::laneid)) return each([](std::uint32_t l) { return l; });
    if (is(S::lanemask_eq)) return each([](std::uint32_t l) { return 1u << l; });
    if (is(S::lanemask_lt)) return each([](std::uint32_t l) { return (1u << l) - 1; });
    if (is(S::lanemask_le)) return each([](std::uint32_t l) { return (2u << l) - 1; });
    if (is(S::lanemask_gt)) return each([](std::uint32_t l) { return ~((2u << l) - 1); });
    if (is(S::lanemask_ge)) return each([](std::uint32_t l) { return ~((1u << l) - 1); });
    const std::uint32_t dynamic = request_->dynamic_shared_bytes;
    all(is(S::nwarpid)               ? 32
        : is(S::nsmid)               ? 1
        : is(S::dynamic_smem_size)   ? dynamic
        : is(S::total_smem_size)     ? code_->shared_bytes - code_->reserved_shared_bytes + dynamic
        : is(S::stack)               ? code_->local_bytes
        : is(S::cluster_ctarank)     ? rank_in(request_->cluster, block_.index)
        : is(S::cluster_nctarank)    ? static_cast<std::uint32_t>(request_->cluster.count())
        : is(S::is_explicit_cluster) ? std::uint32_t{request_->explicit_cluster}
        : is(S::workspace_high)      ? static_cast<std::uint32_t>(request_->workspace >> 32)
        : is(S::workspace_low)       ? static_cast<std::uint32_t>(request_->workspace)
                                     : 0);  // smid, gridid, zero
}

// Lists the special registers to refill when a register file gets another warp: [0] for the first warp of a block, [1]
// for its other warps.
void Worker::find_stale_specials() {
    for (auto& slots : stale_specials_) slots.clear();
    for (const Code::SpecialSlot& slot : code_->specials) {
        const Lifetime lifetime = lifetime_of(slot.special);
        const bool by_warp =
            lifetime == Lifetime::none || (lifetime == Lifetime::warp && files_ < warps_.size());
        const bool by_block = by_warp || lifetime == Lifetime::block;
        if (by_block) stale_specials_[0].push_back(slot);
        if (by_warp || (by_block && files_ > 1)) stale_specials_[1].push_back(slot);
    }
}

}  // namespace emulated::machine
