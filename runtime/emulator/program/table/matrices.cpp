#include "program/table/matrices.hpp"

namespace emulated::program {
namespace {

using enum ptx::Type;
using F = Flag;

struct Shape {
    Flag flag;
    std::uint8_t m, n;
    std::uint16_t k;
};
constexpr Shape shapes[] = {
    {F::m8n8k4, 8, 8, 4},       {F::m8n8k16, 8, 8, 16},     {F::m8n8k32, 8, 8, 32},
    {F::m8n8k128, 8, 8, 128},   {F::m16n8k4, 16, 8, 4},     {F::m16n8k8, 16, 8, 8},
    {F::m16n8k16, 16, 8, 16},   {F::m16n8k32, 16, 8, 32},   {F::m16n8k64, 16, 8, 64},
    {F::m16n8k128, 16, 8, 128}, {F::m16n8k256, 16, 8, 256}, {F::m16n16k8, 16, 16, 8},
    {F::m16n16k16, 16, 16, 16}, {F::m8n32k16, 8, 32, 16},   {F::m32n8k16, 32, 8, 16},
};

// The supported products: A and B each have one of the types in `factors`, C and D one of those in `sums`.
struct Form {
    Family family;
    FlagSet shapes;
    TypeSet factors, sums;
};
constexpr FlagSet tiles{F::m16n16k16, F::m8n32k16, F::m32n8k16};
constexpr Form forms[] = {
    {Family::mma, {F::m8n8k4, F::m16n8k8, F::m16n8k16}, {f16}, {f16, f32}},
    {Family::mma, {F::m16n8k8, F::m16n8k16}, {bf16}, {f32}},
    {Family::mma, {F::m16n8k4, F::m16n8k8}, {tf32}, {f32}},
    {Family::mma, {F::m8n8k4, F::m16n8k4, F::m16n8k8, F::m16n8k16}, {f64}, {f64}},
    {Family::mma, {F::m16n8k16, F::m16n8k32}, {e4m3, e5m2}, {f16, f32}},
    {Family::mma, {F::m8n8k16, F::m16n8k16, F::m16n8k32}, {s8, u8}, {s32}},
    {Family::mma, {F::m8n8k32, F::m16n8k32, F::m16n8k64}, {s4, u4}, {s32}},
    {Family::mma, {F::m8n8k128, F::m16n8k128, F::m16n8k256}, {b1}, {s32}},
    {Family::sparse_mma, {F::m16n8k16, F::m16n8k32}, {f16}, {f16, f32}},
    {Family::sparse_mma, {F::m16n8k16, F::m16n8k32}, {bf16}, {f32}},
    {Family::sparse_mma, {F::m16n8k8, F::m16n8k16}, {tf32}, {f32}},
    {Family::sparse_mma, {F::m16n8k64}, {e4m3, e5m2}, {f16, f32}},
    {Family::sparse_mma, {F::m16n8k32, F::m16n8k64}, {s8, u8}, {s32}},
    {Family::sparse_mma, {F::m16n8k64, F::m16n8k128}, {s4, u4}, {s32}},
    {Family::wmma, tiles, {f16}, {f16, f32}},
    {Family::wmma, tiles, {bf16}, {f32}},
    {Family::wmma, {F::m16n16k8}, {tf32}, {f32}},
    {Family::wmma, {F::m8n8k4}, {f64}, {f64}},
    {Family::wmma, tiles, {s8, u8}, {s32}},
    {Family::wmma, {F::m8n8k32}, {s4, u4}, {s32}},
    {Family::wmma, {F::m8n8k128}, {b1}, {s32}},
};

const Shape* shape_of(const FlagSet& flags) {
    for (const Shape& shape : shapes) {
        if (flags.has(shape.flag)) return &shape;
    }
    return nullptr;
}

// The form with this shape for which `fits` is true.
template <class Fits>
const Form* form_of(Family family, Flag shape, const Fits& fits) {
    for (const Form& form : forms) {
        if (form.family == family && form.shapes.has(shape) && fits(form)) return &form;
    }
    return nullptr;
}

Fragment multiplicand(unsigned outer, unsigned depth, Type type) {
    const unsigned each = elements_per_register(type);
    Fragment made;
    made.outer = static_cast<std::uint8_t>(outer);
    made.inner = static_cast<std::uint8_t>(depth / (4 * each));
    made.bits = static_cast<std::uint8_t>(bits_of(type));
    made.per_register = static_cast<std::uint8_t>(each);
    return made;
}

}  // namespace

std::optional<Product> product_of(Family family, const FlagSet& flags, Type a, Type b, Type c, Type d) {
    const Shape* shape = shape_of(flags);
    const auto fits = [&](const Form& form) {
        return form.factors.has(a) && form.factors.has(b) && form.sums.has(c) && form.sums.has(d);
    };
    if (!shape || !form_of(family, shape->flag, fits)) return std::nullopt;
    // Only the products introduced with Volta convert between the types of C and D.
    const bool may_convert = family == Family::wmma || shape->flag == Flag::m8n8k4;
    if (c != d && (!may_convert || (family == Family::mma && d == f32))) return std::nullopt;
    if (family == Family::wmma && a != b) return std::nullopt;
    return Product{static_cast<std::uint8_t>(shape->m / 8),
                   static_cast<std::uint8_t>(shape->n / 8),
                   shape->k,
                   a,
                   b,
                   c,
                   d};
}

std::optional<Product> warpgroup_product_of(const Opcode& opcode) {
    const Type a = opcode.second, b = opcode.third, d = opcode.type;
    constexpr TypeSet small_floats{e4m3, e5m2}, integers{s8, u8};
    const bool is_float = !integers.has(a) && a != b1;
    const bool mixes = (small_floats.has(a) && small_floats.has(b)) || (integers.has(a) && integers.has(b));
    if (a != b && !mixes) return std::nullopt;
    if (is_float ? d != f32 && (d != f16 || (a != f16 && !small_floats.has(a))) : d != s32)
        return std::nullopt;
    const bool sparse = opcode.flags.has(F::sp);
    if (sparse && a == b1) return std::nullopt;
    // A row of A has 32 bytes; a sparse one stores half of its elements.
    const unsigned depth = 256 / bits_of(a) * (sparse ? 2 : 1);
    const unsigned n = opcode.columns, step = is_float || n <= 32 ? 8 : 16;
    // Integer products may also have n = 240 and 256, although the PTX manual lists these only for sparse products.
    if (opcode.depth != depth || n % step != 0 || n < 8 || n > 256) return std::nullopt;
    return Product{2, static_cast<std::uint8_t>(n / 8), opcode.depth, a, b, d, d};
}

std::optional<Fragment> wmma_fragment(const FlagSet& flags, Flag matrix, Type type) {
    const Shape* shape = shape_of(flags);
    const bool sum = matrix == Flag::c || matrix == Flag::d;
    const auto fits = [&](const Form& form) { return (sum ? form.sums : form.factors).has(type); };
    if (!shape || !form_of(Family::wmma, shape->flag, fits)) return std::nullopt;
    Product product{static_cast<std::uint8_t>(shape->m / 8),
                    static_cast<std::uint8_t>(shape->n / 8),
                    shape->k,
                    type,
                    type,
                    type,
                    type};
    const bool by_rows = flags.has(Flag::row);
    Fragment made;
    if (sum) made = fragment_c(product, type);
    if (matrix == Flag::a) made = fragment_a(product, false);
    if (matrix == Flag::b) made = fragment_b(product);
    made.inner_contiguous = by_rows == (matrix != Flag::b);
    // Elements smaller than a byte have no address.
    if (made.bits < 8 && !made.inner_contiguous) return std::nullopt;
    if (!sum && type == f16) made.copies = static_cast<std::uint8_t>(8 / registers_of(made));
    return made;
}

Type arithmetic_of(const Product& product) noexcept {
    if (product.a == b1 || product.a == f64) return product.a;
    return product.d == s32 ? s32 : f32;
}

Fragment fragment_a(const Product& product, bool sparse) {
    Fragment made = multiplicand(product.rows, sparse ? product.depth / 2u : product.depth, product.a);
    made.outer_first = true;
    return made;
}

Fragment fragment_b(const Product& product) {
    return multiplicand(product.columns, product.depth, product.b);
}

Fragment fragment_c(const Product& product, Type type) {
    Fragment made;
    made.outer = product.rows;
    made.inner = product.columns;
    made.bits = static_cast<std::uint8_t>(bits_of(type));
    made.registers = static_cast<std::uint8_t>(registers_per_block(type));
    made.per_register = static_cast<std::uint8_t>(2 / made.registers);
    made.outer_first = true;
    return made;
}

}  // namespace emulated::program
