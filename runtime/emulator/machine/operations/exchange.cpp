// What the lanes of a warp do together: votes, matches, reductions. They wait for each other as on Volta and
// later.
#include "machine/groups.hpp"
#include "machine/registry.hpp"
#include "machine/warp.hpp"

namespace emulated::machine {
namespace {

using program::Flag;
using program::Operation;
using program::Type;
using u32 = std::uint32_t;

template <Flag Mode>
const Instruction* vote(Lanes& s, const Instruction* i) {
    if (!all_here(s, i, i->operand[2])) return nullptr;
    const u32 p = predicate_at(s, i->operand[1]) & s.mask;
    const u32* members = lanes_at<u32>(s, i->operand[2]);
    u32 truth = 0;
    each_lane(s.mask, [&](unsigned l) {
        const u32 voters = members[l] & s.mask, yes = p & voters;
        if (Mode == Flag::ballot) lanes_at<u32>(s, i->operand[0])[l] = yes;
        const bool holds = Mode == Flag::all   ? yes == voters
                           : Mode == Flag::any ? yes != 0
                                               : yes == 0 || yes == voters;
        truth |= static_cast<u32>(holds) << l;
    });
    if (Mode != Flag::ballot) write_predicate(s, i->operand[0], truth);
    return i + 1;
}

template <class T, Flag Mode>
const Instruction* match(Lanes& s, const Instruction* i) {
    if (!all_here(s, i, i->operand[3])) return nullptr;
    const T* a = lanes_at<T>(s, i->operand[2]);
    const u32* members = lanes_at<u32>(s, i->operand[3]);
    u32 r[32], truth = 0;
    each_lane(s.mask, [&](unsigned l) {
        const u32 others = members[l] & s.mask;
        u32 equal = 0;
        each_lane(others, [&](unsigned k) { equal |= static_cast<u32>(a[k] == a[l]) << k; });
        const bool all = equal == others;
        r[l] = Mode == Flag::any ? equal : all ? others : 0;
        truth |= static_cast<u32>(all) << l;
    });
    u32* d = lanes_at<u32>(s, i->operand[0]);
    each_lane(s.mask, [&](unsigned l) { d[l] = r[l]; });
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
    each_lane(s.mask, [&](unsigned l) {
        const u32 others = members[l] & s.mask;
        r[l] = a[__builtin_ctz(others)];
        each_lane(others & (others - 1), [&](unsigned k) { r[l] = static_cast<T>(F{}(r[l], a[k])); });
    });
    T* d = lanes_at<T>(s, i->operand[0]);
    each_lane(s.mask, [&](unsigned l) { d[l] = r[l]; });
    return i + 1;
}

const Instruction* active_mask(Lanes& s, const Instruction* i) {
    u32* d = lanes_at<u32>(s, i->operand[0]);
    each_lane(s.mask, [&](unsigned l) { d[l] = s.mask; });
    return i + 1;
}

const Instruction* warp_barrier(Lanes& s, const Instruction* i) {
    return all_here(s, i, i->operand[0]) ? i + 1 : nullptr;
}

template <Flag Space>
const Instruction* is_space(Lanes& s, const Instruction* i) {
    const std::uint64_t* a = lanes_at<std::uint64_t>(s, i->operand[1]);
    u32 truth = 0;
    each_lane(s.mask, [&](unsigned l) {
        const auto in = [&](std::uint64_t window) { return a[l] - window < program::window_bytes; };
        const auto constant = [&] {
            const memory::Allocation* found = s.memory->find(a[l]);
            return found && found->read_only;
        };
        const bool yes = Space == Flag::shared ? a[l] - program::shared_window < program::cluster_stride
                         : Space == Flag::shared_cluster ? in(program::shared_window)
                         : Space == Flag::local          ? in(program::local_window)
                         : Space == Flag::param          ? in(program::param_window)
                         : Space == Flag::constant
                             ? constant()
                             // whatever lies in no other space's window
                             : a[l] >= program::param_window + program::window_bytes && !constant();
        truth |= static_cast<u32>(yes) << l;
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
    r.add(Operation::redux, Type::u32, none, {Flag::add}, reduce<u32, Sum>);
    r.add(Operation::redux, Type::s32, none, {Flag::add}, reduce<std::int32_t, Sum>);
    r.add(Operation::redux, Type::u32, none, {Flag::min}, reduce<u32, Least>);
    r.add(Operation::redux, Type::s32, none, {Flag::min}, reduce<std::int32_t, Least>);
    r.add(Operation::redux, Type::u32, none, {Flag::max}, reduce<u32, Greatest>);
    r.add(Operation::redux, Type::s32, none, {Flag::max}, reduce<std::int32_t, Greatest>);
    r.add(Operation::redux, Type::u32, none, {Flag::and_}, reduce<u32, And>);
    r.add(Operation::redux, Type::u32, none, {Flag::or_}, reduce<u32, Or>);
    r.add(Operation::redux, Type::u32, none, {Flag::xor_}, reduce<u32, Xor>);
    r.add(Operation::activemask, Type::u32, none, {}, active_mask);
    r.add(Operation::bar_warp, none, none, {}, warp_barrier);
    for_flags<Flag::global, Flag::constant, Flag::shared, Flag::local, Flag::param, Flag::shared_cluster>(
        [&]<Flag F>() { r.add(Operation::isspacep, Type::u64, none, {F}, is_space<F>); });
}

}  // namespace emulated::machine
