// setp, set, selp, slct.
#include <cmath>

#include "reference/evaluate.hpp"

namespace reference {
namespace {

// The order of two values. Floats may be unordered.
enum class Order { less, equal, greater, unordered };

Order order_of(Type type, Bits a, Bits b, bool flush) {
    if (emulated::ptx::is_float(type)) {
        if (flush) a = flushed(type, a), b = flushed(type, b);
        const double x = value_of(type, a), y = value_of(type, b);
        if (std::isnan(x) || std::isnan(y)) return Order::unordered;
        return x < y ? Order::less : x > y ? Order::greater : Order::equal;
    }
    const Wide x = integer_of(type, a), y = integer_of(type, b);
    return x < y ? Order::less : x > y ? Order::greater : Order::equal;
}

bool holds(const FlagSet& flags, Order order) {
    const bool less = order == Order::less, equal = order == Order::equal, greater = order == Order::greater,
               unordered = order == Order::unordered;
    struct Row {
        Flag flag;
        bool holds;
    };
    for (const Row& row : {Row{Flag::eq, equal},
                           {Flag::ne, less || greater},
                           {Flag::lt, less},
                           {Flag::le, less || equal},
                           {Flag::gt, greater},
                           {Flag::ge, greater || equal},
                           {Flag::lo, less},
                           {Flag::ls, less || equal},
                           {Flag::hi, greater},
                           {Flag::hs, greater || equal},
                           {Flag::equ, equal || unordered},
                           {Flag::neu, !equal},
                           {Flag::ltu, less || unordered},
                           {Flag::leu, less || equal || unordered},
                           {Flag::gtu, greater || unordered},
                           {Flag::geu, greater || equal || unordered},
                           {Flag::num, !unordered},
                           {Flag::is_nan, unordered}}) {
        if (flags.has(row.flag)) return row.holds;
    }
    return false;
}

void setp(const Call& call, Answers& out) {
    const FlagSet& flags = call.opcode.flags;
    const bool truth = holds(flags, order_of(call.type(), call[0], call[1], call.has(Flag::ftz)));
    const auto combined = [&](bool value) {
        if (call.has(Flag::and_)) return value && call[2];
        if (call.has(Flag::or_)) return value || call[2];
        if (call.has(Flag::xor_)) return value != (call[2] != 0);
        return value;
    };
    out.add(Type::pred, combined(truth));
    out.add(Type::pred, combined(!truth));
}

// For packed halves: p for the lower ones, q for the upper ones.
void setp_packed(const Call& call, Answers& out) {
    const Type half = element_of(call.type());
    for (const unsigned at : {0u, 16u}) {
        Opcode opcode = call.opcode;
        opcode.type = half;
        const Bits sources[] = {call[0] >> at & 0xffff, call[1] >> at & 0xffff, call[2]};
        Answers answers;
        setp({opcode, sources}, answers);
        out.add(Type::pred, answers.at[0].bits);
    }
}

// If the comparison holds, the result is all ones, or 1.0 in a floating-point type; otherwise it is 0.
void set(const Call& call, Answers& out) {
    const bool packed = is_packed(call.opcode.second);
    const Type from = element_of(call.opcode.second);
    // An integer has a result in each half, if the source is packed halves.
    const Type to = packed && !emulated::ptx::is_float(call.type()) ? Type::u16 : element_of(call.type());
    const Bits yes = emulated::ptx::is_float(to) ? bits_of(to, 1.0) : mask_of(to);
    Bits made = 0;
    for (unsigned at = 0; at < bits_in(call.opcode.second); at += bits_in(from)) {
        const Order order =
            order_of(from, call[0] >> at & mask_of(from), call[1] >> at & mask_of(from), call.has(Flag::ftz));
        bool truth = holds(call.opcode.flags, order);
        if (call.has(Flag::and_)) truth = truth && call[2] != 0;
        if (call.has(Flag::or_)) truth = truth || call[2] != 0;
        if (call.has(Flag::xor_)) truth = truth != (call[2] != 0);
        if (truth) made |= yes << at;
    }
    out.add(call.type(), made);
}

void selp(const Call& call, Answers& out) { out.add(call.type(), call[2] ? call[0] : call[1]); }

void slct(const Call& call, Answers& out) {
    const Type type = call.opcode.second;
    const Order order = order_of(type, call[2], 0, call.has(Flag::ftz));
    out.add(call.type(), order == Order::greater || order == Order::equal ? call[0] : call[1]);
}

constexpr Family families[] = {
    {"setp:packed", "pp", "TT", setp_packed},
    {"setp", "pp", "TT", setp},
    {"set", "T", "SS", set},
    {"selp", "T", "TTp", selp},
    {"slct", "T", "TTS", slct},
};

}  // namespace

std::span<const Family> comparison_families() { return families; }

}  // namespace reference
