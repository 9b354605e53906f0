// Atomics: lane after lane in lane order. Other workers may be at the same address, so each is an atomic
// exchange of bits; shared memory belongs to one worker.
#include "handlers/access.hpp"

namespace emulated::machine::BASCULE_ISA {
namespace {

template <class T>
struct AddOp {
    static T run(T old, T b, T) { return static_cast<T>(old + b); }
};
template <class T>
struct MinOp {
    static T run(T old, T b, T) { return b < old ? b : old; }
};
template <class T>
struct MaxOp {
    static T run(T old, T b, T) { return b > old ? b : old; }
};
template <class T>
struct AndOp {
    static T run(T old, T b, T) { return old & b; }
};
template <class T>
struct OrOp {
    static T run(T old, T b, T) { return old | b; }
};
template <class T>
struct XorOp {
    static T run(T old, T b, T) { return old ^ b; }
};
template <class T>
struct ExchOp {
    static T run(T, T b, T) { return b; }
};
template <class T>
struct CasOp {
    static T run(T old, T b, T c) { return old == b ? c : old; }
};
template <class T>
struct IncOp {
    static T run(T old, T b, T) { return old >= b ? 0 : old + 1; }
};
template <class T>
struct DecOp {
    static T run(T old, T b, T) { return old == 0 || old > b ? b : old - 1; }
};
template <class H>
struct SmallAddOp {
    static H run(H old, H b, H) {
        H r;
        from_float(to_float(old) + to_float(b), r);
        return r;
    }
};
template <class H>
struct TwiceAddOp {
    static u32 run(u32 old, u32 b, u32) {
        const H low = SmallAddOp<H>::run({u16(old)}, {u16(b)}, {0});
        const H high = SmallAddOp<H>::run({u16(old >> 16)}, {u16(b >> 16)}, {0});
        return low.bits | u32(high.bits) << 16;
    }
};

template <Space Where, class T, class Op>
const Instruction* atomic(Lanes& s, const Instruction* i) {
    if (!locate<Where>(s, i, i->operand[1], sizeof(T), sizeof(T), true)) return stopped(s, i);
    using U = typename BitsOf<sizeof(T)>::type;
    T* d = lanes_at<T>(s, i->operand[0]);
    const T* b = lanes_at<T>(s, i->operand[2]);
    const T* c = lanes_at<T>(s, i->operand[3]);
    alignas(64) T r[32];
    for (u32 left = s.mask; left; left &= left - 1) {
        const unsigned l = static_cast<unsigned>(__builtin_ctz(left));
        U* at = reinterpret_cast<U*>(s.base + s.offset[l]);
        if constexpr (Where == Space::shared) {
            r[l] = bits_as<T>(*at);
            *at = bits_as<U>(Op::run(r[l], b[l], c[l]));
        } else {
            U old = __atomic_load_n(at, __ATOMIC_RELAXED);
            while (!__atomic_compare_exchange_n(at, &old, bits_as<U>(Op::run(bits_as<T>(old), b[l], c[l])),
                                                true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
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
    const Type t = TypeOf<T>::value;
    add_atomic<T, AddOp<T>>(r, Flag::add, t);
    add_atomic<T, AndOp<T>>(r, Flag::and_, t);
    add_atomic<T, OrOp<T>>(r, Flag::or_, t);
    add_atomic<T, XorOp<T>>(r, Flag::xor_, t);
    add_atomic<T, ExchOp<T>>(r, Flag::exch, t);
    add_atomic<T, CasOp<T>>(r, Flag::cas, t);
}
template <class T>
void add_extremes(Registry& r) {
    add_atomic<T, MinOp<T>>(r, Flag::min, TypeOf<T>::value);
    add_atomic<T, MaxOp<T>>(r, Flag::max, TypeOf<T>::value);
}

}  // namespace

void register_atomics(Registry& r) {
    add_bit_atomics<u32>(r);
    add_bit_atomics<u64>(r);
    for_types<u32, u64, std::int32_t, std::int64_t>([&]<class T>() { add_extremes<T>(r); });
    add_atomic<u32, IncOp<u32>>(r, Flag::inc, Type::u32);
    add_atomic<u32, DecOp<u32>>(r, Flag::dec, Type::u32);
    add_atomic<u16, CasOp<u16>>(r, Flag::cas, Type::u16);
    add_atomic<float, AddOp<float>>(r, Flag::add, Type::f32);
    add_atomic<double, AddOp<double>>(r, Flag::add, Type::f64);
    add_atomic<Half, SmallAddOp<Half>>(r, Flag::add, Type::f16);
    add_atomic<Brain, SmallAddOp<Brain>>(r, Flag::add, Type::bf16);
    add_atomic<u32, TwiceAddOp<Half>>(r, Flag::add, Type::f16x2);
    add_atomic<u32, TwiceAddOp<Brain>>(r, Flag::add, Type::bf16x2);
}

}  // namespace emulated::machine::BASCULE_ISA
