// Matrix products of a warpgroup (wgmma), computed when a warp waits for them (machine/warpgroups.hpp).
#include "handlers/products.hpp"
#include "machine/warpgroups.hpp"

namespace emulated::machine::BASCULE_ISA {
namespace {

using program::WarpgroupBits;

constexpr u32 row_bytes = 16, core_bytes = 8 * row_bytes;  // a core matrix fills one register of a warp

/// Reads a core matrix as a register holds it: 8 rows along K.
inline void read_core(const std::byte* shared, const SharedMatrix& from, u32 outer, u32 inner,
                      std::byte* to) {
    if (!from.transposed) {
        for (u32 r = 0; r < 8; ++r)
            std::memcpy(to + r * row_bytes, shared + from.row(outer, inner, r), row_bytes);
        return;
    }
    u16 rows[8][8];
    for (u32 r = 0; r < 8; ++r) std::memcpy(rows[r], shared + from.row(outer, inner, r), row_bytes);
    auto* turned = reinterpret_cast<u16*>(to);
    for (u32 r = 0; r < 8; ++r) {
        for (u32 c = 0; c < 8; ++c) turned[c * 8 + r] = rows[r][c];
    }
}

/// Rounds sums to f16, the type of D.
inline void round_to_halves(float* sums) {
    for (u32 l = 0; l < 64; ++l) sums[l] = to_float(to_half(sums[l]));
}

template <class T, class Step, bool Sparse>
void multiply(const WarpgroupProduct& given, const std::byte* shared, void* to) {
    const Product p = given.product;
    const u32 depth = p.a == Type::b1 ? p.depth / 32u : p.depth;  // 32 elements of one bit form a word
    const u32 width = p.a == Type::b1 ? 4 : 4 * program::elements_per_register(p.a);
    const u32 b_blocks = depth / width;
    constexpr u32 a_blocks = 2;
    alignas(64) std::byte core[core_bytes];
    alignas(64) T a[2 * a_blocks * 8 * 16], b[8 * 64];
    const Read<T> read_a = reader_of(p.a, T{}), read_b = reader_of(p.b, T{});
    for (u32 k = 0; k < 2 * a_blocks; ++k) {
        const std::byte* from = given.registers_of_a + k * core_bytes;
        if (!(given.bits & WarpgroupBits::a_in_registers)) {
            read_core(shared, given.a, given.first + k % 2, k / 2, core);
            from = core;
        }
        read_a(from, a + k * 8 * width);
    }
    if constexpr (std::is_same_v<T, float>) {
        if (given.bits & WarpgroupBits::negates) {
            for (u32 k = 0; k < 2 * a_blocks * 8 * width; ++k) a[k] = -a[k];
        }
    }
    u8 columns[16][most_stored];
    if constexpr (Sparse) find_columns(given.metadata, given.selector, p, columns);

    const bool saturates = given.bits & program::ProductBits::saturates;
    auto* sums = static_cast<T*>(to);
    for (u32 n = 0; n < p.columns; ++n) {
        for (u32 k = 0; k < b_blocks; ++k) {
            read_core(shared, given.b, n, k, core);
            read_transposed(read_b, core, width, b + k * 8 * width);
        }
        for (u32 m = 0; m < 2; ++m, sums += 64) {
            alignas(64) T c[64];
            if (saturates && given.adds) std::memcpy(c, sums, sizeof c);
            if (saturates || !given.adds) std::memset(sums, 0, sizeof c);
            add_products<Step, Sparse, T>(reinterpret_cast<Sums<T>&>(*sums), a + m * 8 * width, 2 * 8 * width,
                                          a_blocks, width, reinterpret_cast<const Vector<T>*>(b),
                                          columns[Sparse ? m * 8 : 0]);
            if constexpr (std::is_same_v<T, u32>) {
                if (saturates && given.adds) add_saturating(sums, c);
            } else if (p.d == Type::f16) {
                round_to_halves(sums);
            }
        }
    }
}

template <class T>
void load(u32 index, bool halves, const std::byte* from, void* to) {
    T* sums = static_cast<T*>(to) + (halves ? index : index / 2) * 64;
    if constexpr (std::is_same_v<T, float>) {
        if (halves) return read_halves(from, sums);
    }
    for (u32 l = 0; l < 32; ++l) sums[2 * l + index % 2] = word_at<T>(from, l);
}

template <class T>
void store(u32 index, bool halves, const void* from, std::byte* to) {
    const T* sums = static_cast<const T*>(from) + (halves ? index : index / 2) * 64;
    if constexpr (std::is_same_v<T, float>) {
        if (halves) {
            for (u32 l = 0; l < 64; ++l) reinterpret_cast<u16*>(to)[l] = to_half(sums[l]).bits;
            return;
        }
    }
    for (u32 l = 0; l < 32; ++l) reinterpret_cast<T*>(to)[l] = canonical(sums[2 * l + index % 2]);
}

template <class T, class Step, bool Sparse = false>
const Instruction* begin(Lanes& s, const Instruction* i) {
    static constexpr WarpgroupArithmetic arithmetic{multiply<T, Step, Sparse>, load<T>, store<T>};
    return begin_warpgroup_product(s, i, arithmetic);
}

}  // namespace

void register_warpgroup(Registry& r) {
    const auto none = Type::none;
    r.add(Operation::warpgroup_mma, Type::f32, none, {}, begin<float, MultiplyAdd>);
    r.add(Operation::warpgroup_mma, Type::f32, none, {Flag::sp}, begin<float, MultiplyAdd, true>);
    r.add(Operation::warpgroup_mma, Type::s32, none, {}, begin<u32, MultiplyAdd>);
    r.add(Operation::warpgroup_mma, Type::s32, none, {Flag::sp}, begin<u32, MultiplyAdd, true>);
    r.add(Operation::warpgroup_mma, Type::b1, none, {}, begin<u32, CountBits<false>>);
}

}  // namespace emulated::machine::BASCULE_ISA
