// Matrices held by a warp according to the PTX manual: which element of a lane's fragment is where in the matrix, for
// each shape and type, and how a product is computed. Nothing here is shared with the machine.
#pragma once

#include <string_view>
#include <vector>

#include "reference/numbers.hpp"

namespace reference {

struct Shape {
    unsigned m = 0, n = 0, k = 0;
};
/// Parses ".m16n8k16" in an opcode.
Shape shape_in(std::string_view spelling);
/// The types in an opcode, in order.
std::vector<Type> types_in(std::string_view spelling);

struct Place {
    unsigned row = 0, column = 0;
};
/// The place of element `i` of the fragment of `lane`, for mma. For a sparse A, the place in the stored half.
Place place_in_a(const Shape& shape, Type type, bool sparse, unsigned lane, unsigned i);
Place place_in_b(const Shape& shape, Type type, bool sparse, unsigned lane, unsigned i);
Place place_in_c(const Shape& shape, unsigned lane, unsigned i);
/// The same for mma.m8n8k4 of f16, in the product that the lane takes part in.
Place small_place_in_a(bool by_rows, unsigned lane, unsigned i);
Place small_place_in_b(bool by_rows, unsigned lane, unsigned i);
Place small_place_in_c(Type type, unsigned lane, unsigned i);

unsigned matrix_bits(Type type);  ///< of an element
double matrix_value(Type type, Bits bits);

/// Elements as bits, by rows.
struct Matrix {
    Type type = Type::none;
    unsigned rows = 0, columns = 0;
    std::vector<Bits> elements;

    Matrix() = default;
    Matrix(Type of, unsigned r, unsigned c) : type(of), rows(r), columns(c), elements(r * c) {}
    Bits& at(unsigned r, unsigned c) { return elements[r * columns + c]; }
    Bits at(unsigned r, unsigned c) const { return elements[r * columns + c]; }
    Bits& at(Place place) { return at(place.row, place.column); }
};

struct ProductRules {
    bool saturates = false;
    bool exclusive_or = false;  ///< combines single bits by xor instead of and
    mpfr_rnd_t rounding = MPFR_RNDN;
    /// For a sparse A, in row-major order: whether each element is stored. The others are skipped, because zero times
    /// infinity would be NaN. Empty for a dense A.
    std::vector<bool> stored;
};

/// D = A B + C, added in order of k. Like the emulated device, rounds products and sums of small floats to f32
/// (EMULATOR.md).
Matrix product(const Matrix& a, const Matrix& b, const Matrix& c, Type d, const ProductRules& rules);

}  // namespace reference
