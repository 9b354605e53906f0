// Matrix products: mma, mma.sp and wmma.mma. Elements are converted once to types that the processor computes with (float,
// double, 32-bit integers), and 8 x 8 sums are kept in vector registers. A block is a tile of the matrix, not of
// threads (program/table/matrices.hpp). Products are added in order of k. Each product and each sum is rounded to
// float; f64 has one rounding for both. Integer sums are exact, whatever the order.
#include "handlers/tensor.hpp"

namespace emulated::machine::BASCULE_ISA {
namespace {

template <class T>
struct VectorOf {
    typedef T type __attribute__((vector_size(8 * sizeof(T))));
};
template <class T>
using Vector = typename VectorOf<T>::type;

constexpr u32 most_elements = 16 * 64;  // stored elements of A or B
constexpr u32 most_stored = 64;         // per row of a sparse A

// --- elements ----------------------------------------------------------------------------------------------

template <class T>
inline T word_at(const std::byte* from, u32 k) {
    T made;
    std::memcpy(&made, from + k * sizeof(T), sizeof made);
    return made;
}

struct FromHalf {
    float operator()(const std::byte* from, u32 k) const { return to_float(Half{word_at<u16>(from, k)}); }
};
struct FromBrain {
    float operator()(const std::byte* from, u32 k) const { return to_float(Brain{word_at<u16>(from, k)}); }
};
/// The manual leaves the last 13 bits of a register undefined; they are ignored.
struct FromTf32 {
    float operator()(const std::byte* from, u32 k) const {
        return bits_as<float>(word_at<u32>(from, k) & 0xffff'e000u);
    }
};
/// 1 sign, 5 exponent and 2 mantissa bits: the upper half of an f16.
struct FromE5m2 {
    float operator()(const std::byte* from, u32 k) const {
        return to_float(Half{static_cast<u16>(word_at<u8>(from, k) << 8)});
    }
};
/// 1 sign, 4 exponent and 3 mantissa bits with a bias of 7; no infinities.
struct FromE4m3 {
    float operator()(const std::byte* from, u32 k) const {
        const u32 bits = word_at<u8>(from, k), magnitude = bits & 0x7f;
        // As in to_float, the shifted exponent is 127 - 7 too small.
        const float scaled = bits_as<float>(magnitude << 20) * bits_as<float>((120u + 127u) << 23);
        const u32 value = magnitude == 0x7f ? 0x7fc0'0000u : bits_as<u32>(scaled);
        return bits_as<float>(value | (bits & 0x80) << 24);
    }
};
template <class T>
struct FromByte {
    u32 operator()(const std::byte* from, u32 k) const { return static_cast<u32>(word_at<T>(from, k)); }
};
struct FromU4 {
    u32 operator()(const std::byte* from, u32 k) const {
        return word_at<u8>(from, k / 2) >> (k % 2 * 4) & 15;
    }
};
struct FromS4 {
    u32 operator()(const std::byte* from, u32 k) const { return (FromU4{}(from, k) ^ 8u) - 8u; }
};
template <class T>
struct Whole {
    T operator()(const std::byte* from, u32 k) const { return word_at<T>(from, k); }
};

/// Converts the elements in one register of all 32 lanes to T. They are 8 rows of a tile.
template <class T>
using Read = void (*)(const std::byte*, T*);

template <class T, class From, u32 PerLane>
void read(const std::byte* from, T* to) {
    BASCULE_LANE_LOOP
    for (u32 k = 0; k < 32 * PerLane; ++k) to[k] = static_cast<T>(From{}(from, k));
}

#if defined(__F16C__)
void read_halves(const std::byte* from, float* to) {
    for (u32 k = 0; k < 64; k += 8) {
        const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 2 * k));
        _mm256_storeu_ps(to + k, _mm256_cvtph_ps(halves));
    }
}
#else
constexpr Read<float> read_halves = read<float, FromHalf, 2>;
#endif

inline Read<float> reader_of(Type type, float) {
    return type == Type::f16    ? read_halves
           : type == Type::bf16 ? read<float, FromBrain, 2>
           : type == Type::tf32 ? read<float, FromTf32, 1>
           : type == Type::e4m3 ? read<float, FromE4m3, 4>
                                : read<float, FromE5m2, 4>;
}
inline Read<u32> reader_of(Type type, u32) {
    return type == Type::s8   ? read<u32, FromByte<s8>, 4>
           : type == Type::u8 ? read<u32, FromByte<u8>, 4>
           : type == Type::s4 ? read<u32, FromS4, 8>
           : type == Type::u4 ? read<u32, FromU4, 8>
                              : read<u32, Whole<u32>, 1>;  // 32 bits at a time
}
inline Read<double> reader_of(Type, double) { return read<double, Whole<double>, 1>; }

// --- sums --------------------------------------------------------------------------------------------------

template <class T>
using Sums = Vector<T>[8];  // a block: 8 rows

inline float canonical(float v) { return v == v ? v : bits_as<float>(0x7fff'ffffu); }
inline double canonical(double v) { return v; }
inline u32 canonical(u32 v) { return v; }

// Reads a block of C or D: one register with two halves, or a pair of registers. `k` is the index of the first in the list.
template <class T>
inline void read_block(Lanes& s, const Instruction* i, u32 k, bool halves, T* to) {
    if constexpr (std::is_same_v<T, float>) {
        if (halves) return read_halves(listed(s, i, k), to);
    }
    const T* even = reinterpret_cast<const T*>(listed(s, i, k));
    const T* odd = reinterpret_cast<const T*>(listed(s, i, k + 1));
    for (u32 l = 0; l < 32; ++l) {
        to[2 * l] = even[l];
        to[2 * l + 1] = odd[l];
    }
}
template <class T>
inline void write_block(Lanes& s, const Instruction* i, u32 k, bool halves, const T* from) {
    if constexpr (std::is_same_v<T, float>) {
        if (halves) {
            u16* to = reinterpret_cast<u16*>(listed(s, i, k));
            for (u32 l = 0; l < 64; ++l) to[l] = to_half(from[l]).bits;
            return;
        }
    }
    T* even = reinterpret_cast<T*>(listed(s, i, k));
    T* odd = reinterpret_cast<T*>(listed(s, i, k + 1));
    for (u32 l = 0; l < 32; ++l) {
        even[l] = canonical(from[2 * l]);
        odd[l] = canonical(from[2 * l + 1]);
    }
}

struct MultiplyAdd {
    template <class T>
    static inline __attribute__((always_inline)) void step(Vector<T>& sum, T a, const Vector<T>& b) {
        if constexpr (std::is_same_v<T, double>) {  // only f64 rounds once
            for (int n = 0; n < 8; ++n) sum[n] = __builtin_fma(a, b[n], sum[n]);
        } else {
            const Vector<T> all = {a, a, a, a, a, a, a, a};
            sum = sum + all * b;
        }
    }
};
template <bool Xor>
struct CountBits {
    template <class T>
    static inline __attribute__((always_inline)) void step(Vector<T>& sum, T a, const Vector<T>& b) {
        for (int n = 0; n < 8; ++n) sum[n] += static_cast<u32>(__builtin_popcount(Xor ? a ^ b[n] : a & b[n]));
    }
};

/// Adds products to a block of 8 x 8 sums. `a` has blocks of 8 x `width` elements, `a_step` apart; `b` has a row of 8 for
/// each k. For a sparse A, `columns` has the k of each stored element, with rows `most_stored` apart.
template <class Step, bool Sparse, class T>
inline __attribute__((always_inline)) void add_products(Sums<T>& sums, const T* a, u32 a_step, u32 blocks,
                                                        u32 width, const Vector<T>* b, const u8* columns) {
    Sums<T> kept;
    for (u32 r = 0; r < 8; ++r) kept[r] = sums[r];
    for (u32 block = 0; block < blocks; ++block, a += a_step) {
        for (u32 c = 0; c < width; ++c) {
            const u32 k = block * width + c;
#pragma GCC unroll 8
            for (u32 r = 0; r < 8; ++r)
                Step::template step<T>(kept[r], a[r * width + c],
                                       b[Sparse ? columns[r * most_stored + k] : k]);
        }
    }
    for (u32 r = 0; r < 8; ++r) sums[r] = kept[r];
}

// --- sparse A ----------------------------------------------------------------------------------------------
// Metadata has two bits for each stored unit of A: one element, two 4-bit elements, or half of a tf32. They give the index
// of the unit among four. A row of A has as many bits as it has units including those that are not stored. Which lanes hold
// them depends on that number.

void find_columns(const u32* metadata, u32 selector, const Product& p, u8 (*columns)[most_stored]) {
    const u32 units = p.a == Type::tf32                    ? p.depth * 2u
                      : p.a == Type::s4 || p.a == Type::u4 ? p.depth / 2u
                                                           : p.depth;
    for (u32 row = 0; row < 16; ++row) {
        const u32 group = row % 8 * 4, upper = row / 8;
        const auto unit_at = [&](u32 stored) -> u32 {  // within the row
            const u32 bit = 2 * stored;
            u32 word = 0;
            if (units == 16)
                word = metadata[group + selector] >> (16 * upper + bit);
            else if (units == 32)
                word = metadata[group + (selector & 1) * 2 + bit / 16] >> (16 * upper + bit % 16);
            else
                word = metadata[group + bit / 32 * 2 + upper] >> (bit % 32);
            return stored / 2 * 4 + (word & 3);
        };
        for (u32 k = 0; k < p.depth / 2u; ++k) {
            const u32 column = p.a == Type::tf32 ? unit_at(2 * k) / 2
                               : units < p.depth ? unit_at(k / 2) * 2 + k % 2
                                                 : unit_at(k);
            columns[row][k] = static_cast<u8>(column);
        }
    }
}

// --- the product -------------------------------------------------------------------------------------------

/// Adds C to sums of products and clamps the results.
void add_saturating(u32* sums, const u32* c) {
    for (u32 l = 0; l < 64; ++l) {
        const s64 exact = s64{static_cast<s32>(sums[l])} + static_cast<s32>(c[l]);
        const s64 least = -(s64{1} << 31), most = (s64{1} << 31) - 1;
        sums[l] = static_cast<u32>(exact < least ? least : exact > most ? most : exact);
    }
}

template <class T, class Step, bool Sparse>
__attribute__((noinline)) void multiply(Lanes& s, const Instruction* i) {
    const Product p = descriptor_of<Product>(i);
    const bool words = p.a == Type::b1;  // 32 elements of one bit form a word
    const u32 depth = words ? p.depth / 32u : p.depth;
    const u32 width = words ? 4 : 4 * program::elements_per_register(p.a);
    const u32 b_blocks = depth / width, a_blocks = Sparse ? b_blocks / 2 : b_blocks;
    const u32 a_first = u32{p.rows} * p.columns * program::registers_per_block(p.d);
    const u32 b_first = a_first + p.rows * a_blocks, c_first = b_first + p.columns * b_blocks;

    alignas(64) T a[most_elements], b[most_elements], aside[32 * 8];
    const Read<T> read_a = reader_of(p.a, T{}), read_b = reader_of(p.b, T{});
    for (u32 k = a_first; k < b_first; ++k) read_a(listed(s, i, k), a + (k - a_first) * 8 * width);
    for (u32 k = b_first; k < c_first; ++k) {  // transposed: a row of 8 columns for each k
        read_b(listed(s, i, k), aside);
        T* to = b + (k - b_first) * 8 * width;
        for (u32 c = 0; c < width; ++c) {
            for (u32 n = 0; n < 8; ++n) to[c * 8 + n] = aside[n * width + c];
        }
    }
    u8 columns[16][most_stored];
    if constexpr (Sparse) find_columns(lanes_at<u32>(s, i->operand[1]), i->extra, p, columns);

    const bool saturates = i->bits & program::ProductBits::saturates;
    const u32 c_step = program::registers_per_block(p.c), d_step = program::registers_per_block(p.d);
    alignas(64) T blocks[4][64], c[64];  // the maximum number of blocks
    for (u32 k = 0; k < u32{p.rows} * p.columns; ++k) {
        const u32 m = k % p.rows, n = k / p.rows;
        read_block(s, i, c_first + k * c_step, p.c == Type::f16, saturates ? c : blocks[k]);
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
        write_block(s, i, k * d_step, p.d == Type::f16, blocks[k]);
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
