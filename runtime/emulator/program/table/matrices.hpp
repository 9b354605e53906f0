// Matrices in the registers of a warp: the supported products, and which register of which lane holds which element. One
// rule places the elements of all matrices except those of m8n8k4 of f16.
#pragma once

#include <cstdint>
#include <optional>

#include "program/table/operations.hpp"

namespace emulated::program {

/// How the registers of a warp hold a matrix. It consists of blocks of 8 x 4w elements: in row l / 4, lane l holds the w
/// elements from w (l % 4) on, counted along the inner direction. The inner direction of A and B is k, and their w elements
/// fill a register (of 32 bits, or 64 for f64). The inner direction of C and D is n, with w = 2: one register of two
/// halves, or two registers. This is the PTX manual's layout for mma. PTX leaves the layout of wmma to the device, which
/// uses the same one.
struct Fragment {
    std::uint8_t outer = 0, inner = 0;  ///< blocks in each direction
    std::uint8_t bits = 0;              ///< per element
    std::uint8_t per_register = 0;      ///< elements per register
    std::uint8_t registers = 1;         ///< per block
    std::uint8_t copies = 1;            ///< of the matrix: f16 of wmma has 8 registers for every shape
    bool outer_first = false;           ///< consecutive blocks are in the outer direction
    bool inner_contiguous = false;      ///< elements along the inner direction are contiguous in memory
};

/// D = A B + C with A of 8 rows x depth and B of depth x 8 columns.
struct Product {
    std::uint8_t rows = 0, columns = 0;  ///< in blocks of 8
    std::uint16_t depth = 0;             ///< k, in elements
    Type a = Type::none, b = Type::none, c = Type::none, d = Type::none;
};

/// Instructions hold a Fragment or a Product as their 8-byte immediate.
static_assert(sizeof(Fragment) == 8 && sizeof(Product) == 8);

// Functions that handlers use are always inlined: handlers are compiled for several instruction sets and must not share a
// function.
#define BASCULE_INLINE constexpr __attribute__((always_inline))

BASCULE_INLINE unsigned bits_of(Type type) {
    if (type == Type::b1) return 1;
    if (type == Type::s4 || type == Type::u4) return 4;
    if (type == Type::s8 || type == Type::u8 || type == Type::e4m3 || type == Type::e5m2) return 8;
    if (type == Type::f16 || type == Type::bf16) return 16;
    return type == Type::f64 ? 64 : 32;
}
/// Elements of A or B per register.
BASCULE_INLINE unsigned elements_per_register(Type type) {
    return bits_of(type) == 64 ? 1 : 32 / bits_of(type);
}
/// Registers per block of 8 x 8 elements of C or D.
BASCULE_INLINE unsigned registers_per_block(Type type) { return type == Type::f16 ? 1 : 2; }

#undef BASCULE_INLINE

/// Instruction::bits of an mma instruction.
struct ProductBits {
    static constexpr std::uint16_t saturates = 1;
    static constexpr std::uint16_t a_by_columns = 2, b_by_rows = 4;  ///< only m8n8k4 of f16
};

/// The kinds of instructions by which one warp multiplies matrices.
enum class Family : std::uint8_t { mma, sparse_mma, wmma };

/// Further bits of a wgmma instruction.
struct WarpgroupBits {
    static constexpr std::uint16_t a_in_registers = 8;
    static constexpr std::uint16_t a_by_columns = 16,
                                   b_by_rows = 32;  ///< transposed in shared memory: M or N is contiguous
    static constexpr std::uint16_t negates = 64;
    static constexpr std::uint16_t sparse = 128;
    static constexpr std::uint16_t at_once = 256;  ///< not deferred to the wait
};

/// The product of these types with the shape in `flags`. Returns nothing if `flags` has no shape, or PTX has no such
/// product.
std::optional<Product> product_of(Family family, const FlagSet& flags, Type a, Type b, Type c, Type d);
/// The product that one of the four warps of a warpgroup computes: 16 of the 64 rows. Returns nothing if PTX has no such
/// wgmma.
std::optional<Product> warpgroup_product_of(const Opcode& opcode);
/// The layout of a multiplicand or accumulator of this type, for the shape in `flags` of wmma; nothing if there is none.
std::optional<Fragment> wmma_fragment(const FlagSet& flags, Flag matrix, Type type);

/// The type in which the machine computes: f32 for small floats, s32 for integers; b1 and f64 as they are.
Type arithmetic_of(const Product& product) noexcept;

Fragment fragment_a(const Product& product, bool sparse);
Fragment fragment_b(const Product& product);
Fragment fragment_c(const Product& product, Type type);
/// Registers per lane, without copies.
constexpr unsigned registers_of(const Fragment& fragment) {
    return unsigned{fragment.outer} * fragment.inner * fragment.registers;
}

}  // namespace emulated::program
