// Atomics: lane after lane in lane order. Other workers may be at the same address, so each is an atomic
// exchange of bits; shared memory belongs to one worker.
#include "handlers/access.hpp"

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

template <Space Where, class T, class Op>
const Instruction* atomic(Lanes& s, const Instruction* i) {
    if (!locate<Where>(s, i, i->operand[1], sizeof(T), sizeof(T), true)) return stopped(s, i);
    using U = BitsOf<T>;
    T* d = lanes_at<T>(s, i->operand[0]);
    const T* b = lanes_at<T>(s, i->operand[2]);
    const T* c = lanes_at<T>(s, i->operand[3]);
    alignas(64) T r[32];
    for (u32 left = s.mask; left; left &= left - 1) {
        const unsigned l = static_cast<unsigned>(__builtin_ctz(left));
        U* at = reinterpret_cast<U*>(s.base + s.offset[l]);
        if constexpr (Where == Space::shared) {
            r[l] = bits_as<T>(*at);
            *at = bits_as<U>(Op{}(r[l], b[l], c[l]));
        } else {
            U old = __atomic_load_n(at, __ATOMIC_RELAXED);
            while (!__atomic_compare_exchange_n(at, &old, bits_as<U>(Op{}(bits_as<T>(old), b[l], c[l])), true,
                                                __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
            }
            r[l] = bits_as<T>(old);
        }
    }
    blend(d, r, s.mask);
    return next(s, i + 1);
}

template <class T, class Op>
void add_atomic(Registry& r, Flag flag, Type type) {
    r.add(Operation::atom, type, Type::none, {flag}, atomic<Space::generic, T, Op>);
    r.add(Operation::atom, type, Type::none, {flag, Flag::global}, atomic<Space::global, T, Op>);
    r.add(Operation::atom, type, Type::none, {flag, Flag::shared}, atomic<Space::shared, T, Op>);
}

template <class T>
void add_bit_atomics(Registry& r) {
    const Type t = type_of<T>;
    add_atomic<T, AddOp>(r, Flag::add, t);
    add_atomic<T, AndOp>(r, Flag::and_, t);
    add_atomic<T, OrOp>(r, Flag::or_, t);
    add_atomic<T, XorOp>(r, Flag::xor_, t);
    add_atomic<T, ExchOp>(r, Flag::exch, t);
    add_atomic<T, CasOp>(r, Flag::cas, t);
}
template <class T>
void add_extremes(Registry& r) {
    add_atomic<T, MinOp>(r, Flag::min, type_of<T>);
    add_atomic<T, MaxOp>(r, Flag::max, type_of<T>);
}

}  // namespace

void register_atomics(Registry& r) {
    add_bit_atomics<u32>(r);
    add_bit_atomics<u64>(r);
    for_types<u32, u64, std::int32_t, std::int64_t>([&]<class T>() { add_extremes<T>(r); });
    add_atomic<u32, IncOp>(r, Flag::inc, Type::u32);
    add_atomic<u32, DecOp>(r, Flag::dec, Type::u32);
    add_atomic<u16, CasOp>(r, Flag::cas, Type::u16);
    add_atomic<float, AddOp>(r, Flag::add, Type::f32);
    add_atomic<double, AddOp>(r, Flag::add, Type::f64);
    add_atomic<Half, SmallAddOp>(r, Flag::add, Type::f16);
    add_atomic<Brain, SmallAddOp>(r, Flag::add, Type::bf16);
    add_atomic<u32, Twice<SmallAddOp, Half>>(r, Flag::add, Type::f16x2);
    add_atomic<u32, Twice<SmallAddOp, Brain>>(r, Flag::add, Type::bf16x2);
}

}  // namespace emulated::machine::BASCULE_ISA
