// Handlers of atomics. Lanes run in lane order. Other workers may access the same address, so each lane uses an atomic
// exchange of bits. Shared memory is used by only one worker.
#include "handlers/access.hpp"
#include "machine/reduction.hpp"

namespace emulated::machine::BASCULE_ISA {
namespace {

using AddOp = decltype([]<class T>(T old, T b, T) -> T { return static_cast<T>(old + b); });
using MinOp = decltype([]<class T>(T old, T b, T) -> T { return b < old ? b : old; });
using MaxOp = decltype([]<class T>(T old, T b, T) -> T { return b > old ? b : old; });
using AndOp = decltype([]<class T>(T old, T b, T) -> T { return old & b; });
using OrOp = decltype([]<class T>(T old, T b, T) -> T { return old | b; });
using XorOp = decltype([]<class T>(T old, T b, T) -> T { return old ^ b; });
using ExchOp = decltype([]<class T>(T, T b, T) -> T { return b; });
using CasOp = decltype([]<class T>(T old, T b, T c) -> T { return old == b ? c : old; });
using IncOp = decltype([]<class T>(T old, T b, T) -> T { return old >= b ? 0 : old + 1; });
using DecOp = decltype([]<class T>(T old, T b, T) -> T { return old == 0 || old > b ? b : old - 1; });
using SmallAddOp = decltype([]<class H>(H old, H b, H) -> H {
    return from_float<H>(to_float(old) + to_float(b));
});

// PTX has these only for vectors. A number wins over NaN, and -0 is less than +0.
template <bool IsMax>
struct SmallExtremeOp {
    template <class H>
    H operator()(H old, H b, H) const {
        const float x = to_float(old), y = to_float(b);
        if (x != x) return y != y ? H{0x7fff} : b;
        if (y != y) return old;
        const bool less = x < y || (x == y && (old.bits & 0x8000) != 0);
        return less == IsMax ? b : old;
    }
};

// Applies `Op` atomically and returns the previous value.
template <class T, class Op>
inline T exchange(BitsOf<T>* at, T b, T c) {
    BitsOf<T> old = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(at, &old, bits_as<BitsOf<T>>(Op{}(bits_as<T>(old), b, c)), true,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
    }
    return bits_as<T>(old);
}

// Combines the elements of an asynchronous reduction when it is performed.
template <class T, class Op>
void combine(std::byte* to, const std::byte* from, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += sizeof(T)) {
        T brought;
        std::memcpy(&brought, from + at, sizeof brought);
        exchange<T, Op>(reinterpret_cast<BitsOf<T>*>(to + at), brought, brought);
    }
}

template <class T, class Op>
const Instruction* reduce_in_bulk(Lanes& s, const Instruction* i) {
    return begin_bulk_copy(s, i, combine<T, Op>);
}
template <class T, class Op>
const Instruction* reduce_remotely(Lanes& s, const Instruction* i) {
    return begin_remote_write(s, i, combine<T, Op>, sizeof(T));
}

// cp.reduce.async.bulk.tensor, whose tensor map has the element type.
using Element = memory::TensorElement;
template <class... Reductions>
constexpr TensorReductions by_element(Reductions... all) {
    TensorReductions made{};
    ((made.of[static_cast<unsigned>(all.first)] = all.second), ...);
    return made;
}
struct Reduces {
    Element first;
    Reduction second;
};
constexpr TensorReductions sums = by_element(
    Reduces{Element::u32, combine<u32, AddOp>}, Reduces{Element::s32, combine<u32, AddOp>},
    Reduces{Element::u64, combine<u64, AddOp>}, Reduces{Element::f16, combine<Half, SmallAddOp>},
    Reduces{Element::bf16, combine<Brain, SmallAddOp>}, Reduces{Element::f32, combine<float, AddOp>},
    Reduces{Element::f32_ftz, combine<float, Ftz<AddOp>>});
template <class Op, class SmallOp>
constexpr TensorReductions extremes = by_element(Reduces{Element::u32, combine<u32, Op>},
                                                 Reduces{Element::s32, combine<s32, Op>},
                                                 Reduces{Element::u64, combine<u64, Op>},
                                                 Reduces{Element::s64, combine<s64, Op>},
                                                 Reduces{Element::f16, combine<Half, SmallOp>},
                                                 Reduces{Element::bf16, combine<Brain, SmallOp>});
template <class Op>
constexpr TensorReductions bitwise =
    by_element(Reduces{Element::u32, combine<u32, Op>}, Reduces{Element::s32, combine<u32, Op>},
               Reduces{Element::u64, combine<u64, Op>}, Reduces{Element::s64, combine<u64, Op>},
               Reduces{Element::f32, combine<u32, Op>}, Reduces{Element::f64, combine<u64, Op>},
               Reduces{Element::f32_ftz, combine<u32, Op>}, Reduces{Element::tf32, combine<u32, Op>},
               Reduces{Element::tf32_ftz, combine<u32, Op>});
template <class Op>
constexpr TensorReductions counters = by_element(Reduces{Element::u32, combine<u32, Op>});

template <const TensorReductions& Table>
const Instruction* reduce_tensor(Lanes& s, const Instruction* i) {
    return begin_tensor_copy(s, i, &Table);
}

template <Space Where, class T, class Op>
const Instruction* atomic(Lanes& s, const Instruction* i) {
    const u32 alignment = i->count > 1 ? i->count : sizeof(T);  // the first element checks the whole vector
    if (!locate<Where>(s, i, i->operand[1], sizeof(T), alignment, true)) return stopped(s, i);
    using U = BitsOf<T>;
    T* d = lanes_at<T>(s, i->operand[0]);
    const T* b = lanes_at<T>(s, i->operand[2]);
    const T* c = lanes_at<T>(s, i->operand[3]);
    alignas(64) T r[32];
    for (const unsigned l : LanesOf{s.mask}) {
        U* at = reinterpret_cast<U*>(s.base + s.offset[l]);
        if constexpr (Where == Space::shared) {
            r[l] = bits_as<T>(*at);
            *at = bits_as<U>(Op{}(r[l], b[l], c[l]));
        } else {
            r[l] = exchange<T, Op>(at, b[l], c[l]);
        }
    }
    blend(d, r, s.mask);
    return next(s, i + 1);
}

// Atomics of 128 bits share one lock, because not every processor has an instruction for them.
template <Space Where, bool Cas>
const Instruction* atomic_wide(Lanes& s, const Instruction* i) {
    if (!locate<Where>(s, i, i->operand[3], 16, 16, true)) return stopped(s, i);
    const u32* list = s.lists + i->operand[0];
    u64 *low = lanes_at<u64>(s, i->operand[1]), *high = lanes_at<u64>(s, i->operand[2]);
    const auto value = [&](u32 k, unsigned l) { return lanes_at<u64>(s, list[k])[l]; };
    while (__atomic_exchange_n(s.wide_lock, 1, __ATOMIC_ACQUIRE) != 0) {
    }
    for (const unsigned l : LanesOf{s.mask}) {
        u64* at = reinterpret_cast<u64*>(s.base + s.offset[l]);
        const u64 old[2] = {at[0], at[1]};
        const bool swaps = !Cas || (old[0] == value(0, l) && old[1] == value(1, l));
        if (swaps) {
            at[0] = value(Cas ? 2 : 0, l);
            at[1] = value(Cas ? 3 : 1, l);
        }
        low[l] = old[0];
        high[l] = old[1];
    }
    __atomic_store_n(s.wide_lock, 0, __ATOMIC_RELEASE);
    return next(s, i + 1);
}

template <Space Where>
void add_wide(Registry& r, FlagSet space) {
    r.add(Operation::atom_wide, Type::none, Type::none, space | FlagSet{Flag::exch},
          atomic_wide<Where, false>);
    r.add(Operation::atom_wide, Type::none, Type::none, space | FlagSet{Flag::cas}, atomic_wide<Where, true>);
}

template <class T, class Op>
void add_atomic(Registry& r, Flag flag, Type type = type_of<T>) {
    r.add(Operation::atom, type, Type::none, {flag}, atomic<Space::generic, T, Op>);
    r.add(Operation::atom, type, Type::none, {flag, Flag::global}, atomic<Space::global, T, Op>);
    r.add(Operation::atom, type, Type::none, {flag, Flag::shared}, atomic<Space::shared, T, Op>);
}

// Registers an atomic and the asynchronous reduction with the same operation.
template <class T, class Op>
void add_both(Registry& r, Flag flag) {
    add_atomic<T, Op>(r, flag);
    r.add(Operation::bulk_reduce, type_of<T>, Type::none, {flag}, reduce_in_bulk<T, Op>);
    r.add(Operation::reduce_async, type_of<T>, Type::none, {flag}, reduce_remotely<T, Op>);
}

template <class T>
void add_bit_atomics(Registry& r) {
    add_both<T, AddOp>(r, Flag::add);
    add_both<T, AndOp>(r, Flag::and_);
    add_both<T, OrOp>(r, Flag::or_);
    add_both<T, XorOp>(r, Flag::xor_);
    add_atomic<T, ExchOp>(r, Flag::exch);
    add_atomic<T, CasOp>(r, Flag::cas);
}

template <class H>
void add_halves(Registry& r, Type pair) {
    const auto add = [&]<class Op>(Flag flag) {
        add_both<H, Op>(r, flag);
        add_atomic<u32, Twice<Op, H>>(r, flag, pair);
    };
    add.template operator()<SmallAddOp>(Flag::add);
    add.template operator()<SmallExtremeOp<false>>(Flag::min);
    add.template operator()<SmallExtremeOp<true>>(Flag::max);
}

}  // namespace

void register_atomics(Registry& r) {
    add_bit_atomics<u32>(r);
    add_bit_atomics<u64>(r);
    for_types<u32, u64, s32, s64>([&]<class T>() {
        add_both<T, MinOp>(r, Flag::min);
        add_both<T, MaxOp>(r, Flag::max);
    });
    add_both<u32, IncOp>(r, Flag::inc);
    add_both<u32, DecOp>(r, Flag::dec);
    add_atomic<u16, CasOp>(r, Flag::cas);
    add_both<float, AddOp>(r, Flag::add);
    add_both<double, AddOp>(r, Flag::add);
    add_halves<Half>(r, Type::f16x2);
    add_halves<Brain>(r, Type::bf16x2);
    const auto tensor = [&](Flag flag, Handler handler) {
        r.add(Operation::tensor_reduce, Type::none, Type::none, {flag}, handler);
    };
    tensor(Flag::add, reduce_tensor<sums>);
    tensor(Flag::min, reduce_tensor<extremes<MinOp, SmallExtremeOp<false>>>);
    tensor(Flag::max, reduce_tensor<extremes<MaxOp, SmallExtremeOp<true>>>);
    tensor(Flag::and_, reduce_tensor<bitwise<AndOp>>);
    tensor(Flag::or_, reduce_tensor<bitwise<OrOp>>);
    tensor(Flag::xor_, reduce_tensor<bitwise<XorOp>>);
    tensor(Flag::inc, reduce_tensor<counters<IncOp>>);
    tensor(Flag::dec, reduce_tensor<counters<DecOp>>);
    add_wide<Space::generic>(r, {});
    add_wide<Space::global>(r, {Flag::global});
    add_wide<Space::shared>(r, {Flag::shared});
}

}  // namespace emulated::machine::BASCULE_ISA
