// The undefined bits of the memory that a kernel accesses.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "machine/cluster.hpp"
#include "machine/groups.hpp"
#include "machine/observer.hpp"
#include "memory/shadow.hpp"

namespace emulated::checks::values {

inline bool is_device_address(std::uint64_t address) {
    return address >= program::param_window + program::window_bytes;
}

/// Memory of one space, with its undefined bits; null if it counts as defined. Of local memory, that of lane 0.
struct Region {
    std::uint64_t start = 0, bytes = 0;
    std::byte* bits = nullptr;
    std::uint64_t stride = 0;  ///< between lanes
};

/// The undefined bits of 16 bytes.
struct Words {
    std::uint64_t low = 0, high = 0;
    explicit operator bool() const { return (low | high) != 0; }
};

/// Keeps a second copy of shared and local memory, whose bits are 1 where nothing has written them.
class UndefinedMemory {
  public:
    explicit UndefinedMemory(const memory::Shadow& device) : device_(device) {}

    void begin_block(const machine::Lanes& lanes, const program::Code& code) {
        std::vector<std::byte>& bits = shared_[lanes.shared];
        bits.assign(lanes.shared_bytes, undefined);
        // The driver initialises what it reserves.
        std::fill_n(bits.begin() + code.reserved_shared_at, code.reserved_shared_bytes, std::byte{0});
        block_ = nullptr;
    }
    void begin_warp(const machine::Lanes& lanes) {
        local_[lanes.warp].assign(32 * lanes.local_bytes, undefined);
    }

    /// Makes the shared memory of all blocks of the cluster defined.
    void define_shared(const machine::Lanes& lanes) {
        for (const auto& member : lanes.block->cluster->members)
            std::ranges::fill(shared_[member.shared], std::byte{0});
    }

    /// The memory that contains the address.
    Region region_of(const machine::Lanes& lanes, std::uint64_t address) {
        constexpr std::uint64_t window = program::window_bytes;
        if (is_device_address(address)) return {device_.base(), device_.bytes(), device_.bits(), 0};
        if (address - program::local_window < window)
            return {program::local_window, lanes.local_bytes, local_[lanes.warp].data(), lanes.local_bytes};
        std::uint64_t start = program::shared_window;
        if (address - start >= window) return {address, 0, nullptr, 0};
        const std::byte* shared = lanes.shared;
        if (const std::uint64_t part = (address - start) / program::cluster_stride; part != 0) {
            const auto& members = lanes.block->cluster->members;
            if (part > members.size()) return {address, 0, nullptr, 0};
            shared = members[part - 1].shared;
            start += part * program::cluster_stride;
        } else if (block_ == lanes.block) {
            return {start, block_bits_->size(), block_bits_->data(), 0};
        }
        std::vector<std::byte>& bits = shared_[shared];
        if (start == program::shared_window) std::tie(block_, block_bits_) = std::pair(lanes.block, &bits);
        return {start, bits.size(), bits.data(), 0};
    }

    /// The undefined bits of memory; null if it counts as defined.
    std::byte* at(const machine::Lanes& lanes, std::uint64_t address, std::uint32_t bytes, unsigned lane) {
        const Region region = region_of(lanes, address);
        const std::uint64_t offset = address - region.start;
        if (region.bits == nullptr || offset > region.bytes || region.bytes - offset < bytes) return nullptr;
        return region.bits + lane * region.stride + offset;
    }

    /// Calls use(bits) with the undefined bits of each lane's access, as one number. Returns false, possibly after some
    /// calls, if not all lanes access one space with one of the usual sizes.
    template <class Use>
    bool for_words(const machine::Execution& e, const machine::MemoryAccess& access, const Use& use) {
        const Region region = region_of(e.lanes, access.address[std::countr_zero(e.mask)]);
        const auto all = [&]<class Word>(Word) {
            if (region.bytes < sizeof(Word)) return false;
            if (region.bits == nullptr) return true;
            for (const unsigned l : machine::LanesOf{e.mask}) {
                const std::uint64_t offset = access.address[l] - region.start;
                if (offset > region.bytes - sizeof(Word)) return false;
                use.template operator()<Word>(region.bits + l * region.stride + offset);
            }
            return true;
        };
        switch (access.bytes) {
            case 1:
                return all(std::uint8_t{});
            case 2:
                return all(std::uint16_t{});
            case 4:
                return all(std::uint32_t{});
            case 8:
                return all(std::uint64_t{});
            default:
                return access.bytes == 16 && all(Words{});
        }
    }

  private:
    static constexpr std::byte undefined{0xff};

    const memory::Shadow& device_;
    std::unordered_map<const std::byte*, std::vector<std::byte>> shared_;  ///< by the block's shared memory
    std::unordered_map<const machine::Warp*, std::vector<std::byte>> local_;
    const machine::Block* block_ = nullptr;  ///< the block of `block_bits_`
    std::vector<std::byte>* block_bits_ = nullptr;
};

}  // namespace emulated::checks::values
