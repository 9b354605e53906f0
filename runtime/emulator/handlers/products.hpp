// Arithmetic of matrix products, for the handlers of mma, wmma and wgmma. Elements are converted once to types that the
// processor computes with (float, double, 32-bit integers), and 8 x 8 sums are kept in vector registers. A block is a tile
// of the matrix, not of threads (program/table/matrices.hpp). Products are added in order of k. Each product and each sum
// is rounded to float; f64 has one rounding for both. Integer sums are exact, whatever the order.
#pragma once

#include "handlers/access.hpp"
#include "program/table/matrices.hpp"

namespace emulated::machine::BASCULE_ISA {
namespace {

using program::Product;

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

/// Converts a register's elements of B: a row of 8 columns for each of `width` k.
template <class T>
inline void read_transposed(Read<T> read, const std::byte* from, u32 width, T* to) {
    alignas(64) T aside[32 * 8];
    read(from, aside);
    for (u32 c = 0; c < width; ++c) {
        for (u32 n = 0; n < 8; ++n) to[c * 8 + n] = aside[n * width + c];
    }
}

// --- sums --------------------------------------------------------------------------------------------------

template <class T>
using Sums = Vector<T>[8];  // a block: 8 rows

inline float canonical(float v) { return v == v ? v : bits_as<float>(0x7fff'ffffu); }
inline double canonical(double v) { return v; }
inline u32 canonical(u32 v) { return v; }

/// Reads a block of C or D: one register with two halves per lane, or a pair of registers.
template <class T>
inline void read_block(const std::byte* first, const std::byte* second, bool halves, T* to) {
    if constexpr (std::is_same_v<T, float>) {
        if (halves) return read_halves(first, to);
    }
    const T* even = reinterpret_cast<const T*>(first);
    const T* odd = reinterpret_cast<const T*>(second);
    for (u32 l = 0; l < 32; ++l) {
        to[2 * l] = even[l];
        to[2 * l + 1] = odd[l];
    }
}
template <class T>
inline void write_block(std::byte* first, std::byte* second, bool halves, const T* from) {
    if constexpr (std::is_same_v<T, float>) {
        if (halves) {
            u16* to = reinterpret_cast<u16*>(first);
            for (u32 l = 0; l < 64; ++l) to[l] = to_half(from[l]).bits;
            return;
        }
    }
    T* even = reinterpret_cast<T*>(first);
    T* odd = reinterpret_cast<T*>(second);
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
// Metadata has two bits for each stored unit of A: one element, two 4-bit elements, or half of a tf32. They give the
// index of the unit among four. A row's metadata has as many bits as the row has units, stored or not. Which lanes hold
// the bits depends on that number.

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

/// Adds C to sums of products and clamps the results.
void add_saturating(u32* sums, const u32* c) {
    for (u32 l = 0; l < 64; ++l) {
        const s64 exact = s64{static_cast<s32>(sums[l])} + static_cast<s32>(c[l]);
        const s64 least = -(s64{1} << 31), most = (s64{1} << 31) - 1;
        sums[l] = static_cast<u32>(exact < least ? least : exact > most ? most : exact);
    }
}

}  // namespace
}  // namespace emulated::machine::BASCULE_ISA
