// Matrix products of one warp: mma, mma.sp and wmma.mma.
#include "handlers/tensor.hpp"

#include "handlers/products.hpp"

namespace emulated::machine::BASCULE_ISA {
namespace {

template <class T, class Step, bool Sparse>
__attribute__((noinline)) void multiply(Lanes& s, const Instruction* i) {
    const Product p = descriptor_of<Product>(i);
    const bool words = p.a == Type::b1;  // 32 elements of one bit form a word
    const u32 depth = words ? p.depth / 32u : p.depth;
    const u32 width = words ? 4 : 4 * program::elements_per_register(p.a);
    const u32 b_blocks = depth / width, a_blocks = Sparse ? b_blocks / 2 : b_blocks;
    const u32 a_first = u32{p.rows} * p.columns * program::registers_per_block(p.d);
    const u32 b_first = a_first + p.rows * a_blocks, c_first = b_first + p.columns * b_blocks;

    alignas(64) T a[most_elements], b[most_elements];
    const Read<T> read_a = reader_of(p.a, T{}), read_b = reader_of(p.b, T{});
    for (u32 k = a_first; k < b_first; ++k) read_a(listed(s, i, k), a + (k - a_first) * 8 * width);
    for (u32 k = b_first; k < c_first; ++k)
        read_transposed(read_b, listed(s, i, k), width, b + (k - b_first) * 8 * width);
    u8 columns[16][most_stored];
    if constexpr (Sparse) find_columns(lanes_at<u32>(s, i->operand[1]), i->extra, p, columns);

    const bool saturates = i->bits & program::ProductBits::saturates;
    const u32 c_step = program::registers_per_block(p.c), d_step = program::registers_per_block(p.d);
    alignas(64) T blocks[4][64], c[64];  // the maximum number of blocks
    for (u32 k = 0; k < u32{p.rows} * p.columns; ++k) {
        const u32 m = k % p.rows, n = k / p.rows;
        const u32 at = c_first + k * c_step;
        read_block(listed(s, i, at), listed(s, i, at + c_step - 1), p.c == Type::f16,
                   saturates ? c : blocks[k]);
        if (saturates) std::memset(blocks[k], 0, sizeof blocks[k]);
        add_products<Step, Sparse, T>(
            reinterpret_cast<Sums<T>&>(*blocks[k]), a + m * 8 * width, p.rows * 8 * width, a_blocks, width,
            reinterpret_cast<const Vector<T>*>(b) + n * depth, columns[Sparse ? m * 8 : 0]);
        if constexpr (std::is_same_v<T, u32>) {
            if (saturates) add_saturating(blocks[k], c);
        }
    }
    // Written last, because D may share registers with A, B and C.
    for (u32 k = 0; k < u32{p.rows} * p.columns; ++k)
        write_block(listed(s, i, k * d_step), listed(s, i, k * d_step + d_step - 1), p.d == Type::f16,
                    blocks[k]);
}

template <class T, class Step, bool Sparse = false, int Rounding = FE_TONEAREST>
const Instruction* product(Lanes& s, const Instruction* i) {
    if (!whole_warp(s, i)) return nullptr;
    if (Rounding != FE_TONEAREST) fesetround(Rounding);
    multiply<T, Step, Sparse>(s, i);
    if (Rounding != FE_TONEAREST) fesetround(FE_TONEAREST);
    return next(s, i + 1);
}

// mma.m8n8k4 of f16 computes four products, each by lanes 4 q to 4 q + 3 and 16 + 4 q to 16 + 4 q + 3.
const Instruction* small_products(Lanes& s, const Instruction* i) {
    if (!whole_warp(s, i)) return nullptr;
    const Product p = descriptor_of<Product>(i);
    const bool a_by_columns = i->bits & program::ProductBits::a_by_columns;
    const bool b_by_rows = i->bits & program::ProductBits::b_by_rows;
    const u32 a_first = p.d == Type::f16 ? 4 : 8, b_first = a_first + 2, c_first = b_first + 2;
    const auto half_at = [&](u32 first, u32 lane, u32 e) {
        return to_float(Half{word_at<u16>(listed(s, i, first + e / 2), 2 * lane + e % 2)});
    };
    // Calls visit(lane, its element, row, column) for the elements of C or D.
    const auto each_sum = [&](u32 q, Type type, auto&& visit) {
        for (u32 l = 0; l < 8; ++l) {
            const u32 lane = 4 * q + l % 4 + l / 4 * 16, within = l % 4, upper = l / 4 * 4;
            for (u32 e = 0; e < 8; ++e) {
                if (type == Type::f16)
                    visit(lane, e, within + upper, e);
                else
                    visit(lane, e, (within & 1) + (e & 2) + upper, (e & 4) + (within & 2) + (e & 1));
            }
        }
    };
    alignas(64) float sums[4][8][8];
    for (u32 q = 0; q < 4; ++q) {
        alignas(64) float a[8 * 4], b[4 * 8];
        for (u32 l = 0; l < 8; ++l) {
            const u32 lane = 4 * q + l % 4 + l / 4 * 16, within = l % 4, upper = l / 4 * 4;
            for (u32 e = 0; e < 4; ++e) {
                const u32 row = a_by_columns ? e + upper : within + upper, k = a_by_columns ? within : e;
                a[row * 4 + k] = half_at(a_first, lane, e);
                const u32 column = b_by_rows ? e + upper : within + upper, depth = b_by_rows ? within : e;
                b[depth * 8 + column] = half_at(b_first, lane, e);
            }
        }
        each_sum(q, p.c, [&](u32 lane, u32 e, u32 row, u32 column) {
            sums[q][row][column] = p.c == Type::f16 ? half_at(c_first, lane, e)
                                                    : word_at<float>(listed(s, i, c_first + e), lane);
        });
        add_products<MultiplyAdd, false, float>(reinterpret_cast<Sums<float>&>(sums[q]), a, 0, 1, 4,
                                                reinterpret_cast<const Vector<float>*>(b), nullptr);
    }
    for (u32 q = 0; q < 4; ++q) {
        each_sum(q, p.d, [&](u32 lane, u32 e, u32 row, u32 column) {
            const float sum = canonical(sums[q][row][column]);
            if (p.d == Type::f16)
                reinterpret_cast<u16*>(listed(s, i, e / 2))[2 * lane + e % 2] = to_half(sum).bits;
            else
                reinterpret_cast<float*>(listed(s, i, e))[lane] = sum;
        });
    }
    return next(s, i + 1);
}

}  // namespace

void register_tensor(Registry& r) {
    const auto none = Type::none;
    r.add(Operation::mma, Type::f32, none, {}, product<float, MultiplyAdd>);
    r.add(Operation::mma, Type::f32, none, {Flag::sp}, product<float, MultiplyAdd, true>);
    r.add(Operation::mma, Type::s32, none, {}, product<u32, MultiplyAdd>);
    r.add(Operation::mma, Type::s32, none, {Flag::sp}, product<u32, MultiplyAdd, true>);
    r.add(Operation::mma, Type::b1, none, {Flag::xor_}, product<u32, CountBits<true>>);
    r.add(Operation::mma, Type::b1, none, {Flag::and_}, product<u32, CountBits<false>>);
    r.add(Operation::mma, Type::f64, none, {}, product<double, MultiplyAdd>);
    r.add(Operation::mma, Type::f64, none, {Flag::rz}, product<double, MultiplyAdd, false, FE_TOWARDZERO>);
    r.add(Operation::mma, Type::f64, none, {Flag::rm}, product<double, MultiplyAdd, false, FE_DOWNWARD>);
    r.add(Operation::mma, Type::f64, none, {Flag::rp}, product<double, MultiplyAdd, false, FE_UPWARD>);
    r.add(Operation::mma, Type::f16, none, {}, small_products);
}

}  // namespace emulated::machine::BASCULE_ISA
