// Outstanding products of a warpgroup (wgmma). Each of the four warps computes its 16 of the 64 rows by itself, as late as
// a correct program allows: at the wait. Until then the accumulators hold poison, and the matrices in shared memory are
// not read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "machine/lanes.hpp"
#include "program/table/matrices.hpp"

namespace emulated::machine {

/// A matrix in shared memory, from a descriptor of 64 bits (PTX ISA, "Matrix Descriptor Format"). It consists of core
/// matrices of 8 rows of 16 bytes.
struct SharedMatrix {
    std::uint32_t start = 0, leading = 0, stride = 0;  ///< in bytes
    std::uint32_t base_offset = 0;                     ///< of the swizzle's pattern, in units of 128 bytes
    std::uint32_t swizzle = 0;                         ///< 32, 64 or 128 bytes, or 0
    bool transposed = false;                           ///< M or N is contiguous, not K

    /// The offset in shared memory of a row of the core matrix `outer` in the direction of M or N and `inner` in that of K.
    /// A row is along K, or along M or N if the matrix is transposed. Source: PTX ISA, "Canonical Layouts".
    constexpr __attribute__((always_inline)) std::uint32_t row(std::uint32_t outer, std::uint32_t inner,
                                                               std::uint32_t row) const {
        const std::uint32_t pitch = swizzle == 0 ? 16 : swizzle;
        std::uint32_t at = start + row * pitch;
        if (!transposed) {
            at += outer * stride + inner * (swizzle == 0 ? leading : 16);
        } else if (swizzle == 0) {
            at += outer * stride + inner * leading;
        } else {
            const std::uint32_t across = swizzle / 16;
            at += outer % across * 16 + outer / across * leading + inner * stride;
        }
        // 16-byte units of a row are exchanged depending on the 128-byte line, in patterns of 2, 4 or 8 lines.
        const std::uint32_t line = (at >> 7) - base_offset;
        return swizzle == 0 ? at : at ^ (line & (swizzle / 16 - 1)) << 4;
    }
};

/// One wgmma of one warp.
struct WarpgroupProduct {
    program::Product product;
    std::uint16_t bits = 0;  ///< ProductBits and WarpgroupBits
    bool adds = false;       ///< D = A B + D, otherwise D = A B
    SharedMatrix a, b;
    std::uint32_t first = 0;  ///< the block of 8 rows of A at which the warp's rows begin
    std::uint32_t selector = 0;
    std::uint32_t group = 0;
    std::uint32_t sums = 0;  ///< index of the accumulators
    std::uint32_t metadata[32];
    std::byte registers_of_a[4 * 128];
};

/// The arithmetic of a type, for one instruction set.
struct WarpgroupArithmetic {
    /// Adds the product to sums in blocks of 8 x 8, or replaces them.
    void (*multiply)(const WarpgroupProduct&, const std::byte* shared, void* sums);
    /// Copies one of D's registers to the sums, and back. `halves`: it has two elements of 16 bits.
    void (*load)(std::uint32_t index, bool halves, const std::byte* from, void* sums);
    void (*store)(std::uint32_t index, bool halves, const void* sums, std::byte* to);
};

/// Runs a wgmma of the running warp: reads its operands, and adds it to the outstanding ones.
const Instruction* begin_warpgroup_product(Lanes& s, const Instruction* i,
                                           const WarpgroupArithmetic& arithmetic);

/// The outstanding products of one warp. Not thread-safe.
class WarpgroupProducts {
  public:
    /// Forgets everything, when a block starts.
    void clear() noexcept;
    /// Begins a product on the accumulators in `places`, of `count` registers. The caller fills the result's operands.
    WarpgroupProduct& begin(const WarpgroupArithmetic& arithmetic, const program::Product& product, bool adds,
                            std::byte* registers, const std::uint32_t* places, std::uint32_t count);
    void commit() noexcept { ++committed_; }
    /// Computes the products of all committed groups except the last `recent`, and writes the accumulators that no other
    /// outstanding product uses.
    void wait(std::uint32_t recent, std::byte* registers, const std::byte* shared);
    /// If the register at `from` is to receive an outstanding result, lets the one at `to` receive it, too.
    void copy(std::uint32_t to, std::uint32_t from);

    /// The outstanding products, in the order of issue; the last ones of `products`.
    std::span<const WarpgroupProduct> waiting() const noexcept { return waiting_; }
    /// True if the register is to receive an outstanding result.
    bool is_outstanding(std::uint32_t place) const noexcept {
        return place / 64 < owners_.size() && owners_[place / 64] != 0;
    }

    bool fenced = false;         ///< the warp has executed wgmma.fence
    std::uint64_t products = 0;  ///< begun by the warp

  private:
    struct Place {
        std::uint32_t at = 0,
                      index = 0;  ///< byte offset in the register file; which register of the accumulators
    };
    /// A matrix D that outstanding products compute.
    struct Sums {
        const WarpgroupArithmetic* arithmetic = nullptr;
        program::Product product;
        std::uint32_t outstanding = 0;  ///< products; 0: not in use
        std::vector<Place> places;      ///< registers that receive the results
        struct alignas(64) Line {
            std::byte bytes[64];
        };
        std::vector<Line> blocks;
    };

    std::uint32_t& owner(std::uint32_t place);
    std::uint32_t find(const program::Product& product, const std::uint32_t* places, std::uint32_t count);
    void own(std::uint32_t sums, Place place);
    void write(std::uint32_t sums, std::byte* registers);

    std::vector<WarpgroupProduct> waiting_;  // in the order of issue
    std::vector<Sums> sums_;
    std::vector<std::uint32_t>
        owners_;  // by place: (1 + index of the sums) << 16 | index of the register; 0: none
    std::uint32_t committed_ = 0;
};

}  // namespace emulated::machine
