// Handlers of votes, matches and warp reductions. The lanes wait for each other, as on Volta and later.
#include "machine/groups.hpp"
#include "machine/registry.hpp"
#include "machine/warp.hpp"

namespace emulated::machine {
namespace {

template <Flag Mode>
const Instruction* vote(Lanes& s, const Instruction* i) {
    if (!all_here(s, i, i->operand[2])) return nullptr;
    const u32 p = predicate_at(s, i->operand[1]) & s.mask;
    const u32* members = lanes_at<u32>(s, i->operand[2]);
    const u32 truth = lanes_where(s.mask, [&](unsigned l) {
        const u32 voters = members[l] & s.mask, yes = p & voters;
        if (Mode == Flag::ballot) lanes_at<u32>(s, i->operand[0])[l] = yes;
        return Mode == Flag::all ? yes == voters : Mode == Flag::any ? yes != 0 : yes == 0 || yes == voters;
    });
    if (Mode != Flag::ballot) write_predicate(s, i->operand[0], truth);
    return i + 1;
}

template <class T, Flag Mode>
const Instruction* match(Lanes& s, const Instruction* i) {
    if (!all_here(s, i, i->operand[3])) return nullptr;
    const T* a = lanes_at<T>(s, i->operand[2]);
    const u32* members = lanes_at<u32>(s, i->operand[3]);
    u32 r[32];
    const u32 truth = lanes_where(s.mask, [&](unsigned l) {
        const u32 others = members[l] & s.mask;
        const u32 equal = lanes_where(others, [&](unsigned k) { return a[k] == a[l]; });
        r[l] = Mode == Flag::any ? equal : equal == others ? others : 0;
        return equal == others;
    });
    write_lanes(s, i->operand[0], r);
    write_predicate(s, i->operand[1], truth);
    return i + 1;
}

using Sum = decltype([](u32 a, u32 b) { return a + b; });
using Least = decltype([](auto a, auto b) { return b < a ? b : a; });
using Greatest = decltype([](auto a, auto b) { return b > a ? b : a; });
using And = decltype([](u32 a, u32 b) { return a & b; });
using Or = decltype([](u32 a, u32 b) { return a | b; });
using Xor = decltype([](u32 a, u32 b) { return a ^ b; });

template <class T, class F>
const Instruction* reduce(Lanes& s, const Instruction* i) {
    if (!all_here(s, i, i->operand[2])) return nullptr;
    const T* a = lanes_at<T>(s, i->operand[1]);
    const u32* members = lanes_at<u32>(s, i->operand[2]);
    T r[32];
    for (const unsigned l : LanesOf{s.mask}) {
        const u32 others = members[l] & s.mask;
        r[l] = a[__builtin_ctz(others)];
        for (const unsigned k : LanesOf{others & (others - 1)}) r[l] = static_cast<T>(F{}(r[l], a[k]));
    }
    write_lanes(s, i->operand[0], r);
    return i + 1;
}

const Instruction* active_mask(Lanes& s, const Instruction* i) {
    u32* d = lanes_at<u32>(s, i->operand[0]);
    for (const unsigned l : LanesOf{s.mask}) d[l] = s.mask;
    return i + 1;
}

const Instruction* warp_barrier(Lanes& s, const Instruction* i) {
    return all_here(s, i, i->operand[0]) ? i + 1 : nullptr;
}

template <Flag Space>
const Instruction* is_space(Lanes& s, const Instruction* i) {
    const std::uint64_t* a = lanes_at<std::uint64_t>(s, i->operand[1]);
    const u32 truth = lanes_where(s.mask, [&](unsigned l) {
        const auto in = [&](std::uint64_t window) { return a[l] - window < program::window_bytes; };
        const auto constant = [&] {
            const memory::Allocation* found = s.memory->find(a[l]);
            return found && found->read_only;
        };
        return Space == Flag::shared           ? a[l] - program::shared_window < program::cluster_stride
               : Space == Flag::shared_cluster ? in(program::shared_window)
               : Space == Flag::local          ? in(program::local_window)
               : Space == Flag::param          ? in(program::param_window)
               : Space == Flag::constant
                   ? constant()
                   // any address outside the windows of the other spaces
                   : a[l] >= program::param_window + program::window_bytes && !constant();
    });
    write_predicate(s, i->operand[0], truth);
    return i + 1;
}

}  // namespace

void register_exchange(Registry& r) {
    const auto none = Type::none;
    for_flags<Flag::all, Flag::any, Flag::uni>(
        [&]<Flag F>() { r.add(Operation::vote, Type::pred, none, {F}, vote<F>); });
    r.add(Operation::vote, Type::u32, none, {Flag::ballot}, vote<Flag::ballot>);
    for_flags<Flag::any, Flag::all>([&]<Flag F>() {
        r.add(Operation::match, Type::u32, none, {F}, match<u32, F>);
        r.add(Operation::match, Type::u64, none, {F}, match<std::uint64_t, F>);
    });
    for_types<u32, s32>([&]<class T>() {
        const Type type = __is_same(T, u32) ? Type::u32 : Type::s32;
        r.add(Operation::redux, type, none, {Flag::add}, reduce<T, Sum>);
        r.add(Operation::redux, type, none, {Flag::min}, reduce<T, Least>);
        r.add(Operation::redux, type, none, {Flag::max}, reduce<T, Greatest>);
    });
    r.add(Operation::redux, Type::u32, none, {Flag::and_}, reduce<u32, And>);
    r.add(Operation::redux, Type::u32, none, {Flag::or_}, reduce<u32, Or>);
    r.add(Operation::redux, Type::u32, none, {Flag::xor_}, reduce<u32, Xor>);
    r.add(Operation::activemask, Type::u32, none, {}, active_mask);
    r.add(Operation::bar_warp, warp_barrier);
    for_flags<Flag::global, Flag::constant, Flag::shared, Flag::local, Flag::param, Flag::shared_cluster>(
        [&]<Flag F>() { r.add(Operation::isspacep, is_space<F>, {F}); });
}

}  // namespace emulated::machine
