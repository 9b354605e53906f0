// Matrices that the registers of a warp hold: which products there are, and which register of which lane
// holds which element. One rule places the elements of all of them, and one exception (m8n8k4 of f16).
#pragma once

#include <bit>
#include <cstdint>
#include <optional>

#include "program/table/operations.hpp"

namespace emulated::program {

/// How the registers of a warp hold a matrix. It consists of blocks of 8 x 4w elements: lane l holds the w
/// elements from 4 w (l / 4) on, counted along the inner direction. The inner direction of A and B is k, and
/// their w elements fill a register (of 32 bits, or of 64 for f64). That of C and D is n, with w = 2: one
/// register of two halves, or two registers. This is the PTX manual's layout for mma, and what wmma does
/// here, whose layout is left to the device.
struct Fragment {
    std::uint8_t outer = 0, inner = 0;  ///< blocks in each direction
    std::uint8_t bits = 0;              ///< of an element
    std::uint8_t per_register = 0;      ///< elements
    std::uint8_t registers = 1;         ///< of a block
    std::uint8_t copies = 1;            ///< of the whole: wmma's f16 has 8 registers for every shape
    bool outer_first = false;           ///< blocks that follow each other do so in the outer direction
    bool inner_contiguous = false;      ///< in memory
};

/// D = A B + C with A of 8 rows x depth, B of depth x 8 columns.
struct Product {
    std::uint8_t rows = 0, columns = 0;  ///< of blocks of 8
    std::uint16_t depth = 0;             ///< elements: k
    Type a = Type::none, b = Type::none, c = Type::none, d = Type::none;
};

/// Immediates of instructions.
static_assert(sizeof(Fragment) == 8 && sizeof(Product) == 8);

// What the handlers use too is inlined always: they are compiled for several instruction sets, and a function
// must not leak from one into another.
#define BASCULE_INLINE constexpr __attribute__((always_inline))

BASCULE_INLINE unsigned bits_of(Type type) {
    if (type == Type::b1) return 1;
    if (type == Type::s4 || type == Type::u4) return 4;
    if (type == Type::s8 || type == Type::u8 || type == Type::e4m3 || type == Type::e5m2) return 8;
    if (type == Type::f16 || type == Type::bf16) return 16;
    return type == Type::f64 ? 64 : 32;
}
/// Of A or B.
BASCULE_INLINE unsigned elements_per_register(Type type) {
    return bits_of(type) == 64 ? 1 : 32 / bits_of(type);
}
/// Of 8 x 8 elements of C or D.
BASCULE_INLINE unsigned registers_per_block(Type type) { return type == Type::f16 ? 1 : 2; }

#undef BASCULE_INLINE

/// Bits of an mma instruction.
struct ProductBits {
    static constexpr std::uint16_t saturates = 1;
    static constexpr std::uint16_t a_by_columns = 2, b_by_rows = 4;  ///< m8n8k4 of f16 alone
};

/// One of the instructions that compute products.
enum class Family : std::uint8_t { mma, sparse_mma, wmma };

/// `flags` has a shape; none if PTX has no such product.
std::optional<Product> product_of(Family family, const FlagSet& flags, Type a, Type b, Type c, Type d);
/// Of a multiplicand or accumulator of this type, of wmma's shape; null as above. `contiguous`: whether the
/// elements of an inner row lie side by side in memory.
std::optional<Fragment> wmma_fragment(const FlagSet& flags, Flag matrix, Type type);

Fragment fragment_a(const Product& product, bool sparse);
Fragment fragment_b(const Product& product);
Fragment fragment_c(const Product& product, Type type);
/// Registers of a lane, without copies.
constexpr unsigned registers_of(const Fragment& fragment) {
    return unsigned{fragment.outer} * fragment.inner * fragment.registers;
}

}  // namespace emulated::program
