// atom and red. With one thread at an address, the result is the reference's; if several threads use it, the returned
// values must be consistent with some order of them.
#include "vectors_atomics.hpp"

#include <stdexcept>

namespace vectors {
Bits after_atomic(const Opcode& opcode, Bits old, Bits b, Bits c) {
    const Bits mask = reference::mask_of(opcode.type);
    const FlagSet& flags = opcode.flags;
    if (flags.has(Flag::exch)) return b;
    if (flags.has(Flag::cas)) return old == b ? c : old;
    if (flags.has(Flag::inc)) return old >= b ? 0 : old + 1;
    if (flags.has(Flag::dec)) return old == 0 || old > b ? b : old - 1;
    if (flags.has(Flag::and_)) return old & b;
    if (flags.has(Flag::or_)) return old | b;
    if (flags.has(Flag::xor_)) return old ^ b;
    const std::string name = flags.has(Flag::min) ? "min" : flags.has(Flag::max) ? "max" : "add";
    const auto plain =
        known(name + "." + std::string(emulated::ptx::type_names[static_cast<unsigned>(opcode.type)].name));
    if (!plain) throw std::logic_error("no " + name + " to compare an atomic with");
    const Bits sources[] = {old, b};
    reference::Answers answers;
    reference::family_of(*plain)->evaluate({*plain, sources}, answers);
    return answers.at[0].bits & mask;
}

namespace {

constexpr unsigned threads = 96, crowded = 3;  ///< threads, and addresses that they share

struct Kernel {
    std::string text;
    bool shared;
};

// Thread t works on word `index[t]` of `memory` (in shared memory a copy) with its own b and c.
std::string kernel_of(const std::string& spelling, const Opcode& opcode, bool shared) {
    const unsigned bytes = emulated::ptx::bytes_of(opcode.type);
    const std::string type(register_type(bytes));
    const bool reduces = opcode.row->name == "red", cas = opcode.flags.has(Flag::cas);
    const bool generic = (opcode.flags & FlagSet{Flag::global, Flag::shared, Flag::shared_cluster}).empty();
    std::string text =
        header +
        ".visible .entry k(.param .u64 pm, .param .u64 pi, .param .u64 pv, .param .u64 po) {\n"
        ".shared .align 8 .b64 s[96];\n.reg .b64 %m, %i, %v, %o, %at, %own, %x;\n.reg .b32 %t, %k, %n, %b;\n"
        ".reg " +
        type +
        " %old, %bb, %cc;\n"
        "ld.param.u64 %m, [pm];\nld.param.u64 %i, [pi];\nld.param.u64 %v, [pv];\nld.param.u64 %o, [po];\n"
        "mov.u32 %t, %tid.x;\nmov.u32 %n, %ntid.x;\nmov.u32 %b, %ctaid.x;\nmad.lo.u32 %t, %n, %b, %t;\n"
        "mul.wide.u32 %at, %t, 4;\nadd.u64 %i, %i, %at;\nld.global.u32 %k, [%i];\n"
        "mul.wide.u32 %at, %t, 16;\nadd.u64 %v, %v, %at;\nld.global" +
        type + " %bb, [%v];\nld.global" + type +
        " %cc, [%v+8];\nmul.wide.u32 %own, %t, 8;\nadd.u64 %o, %o, %own;\n"
        "mul.wide.u32 %at, %k, 8;\nmov" +
        type + " %old, %cc;\n";
    if (shared) {
        text +=
            "add.u64 %i, %m, %own;\nld.global.b64 %x, [%i];\nmov.u64 %v, s;\nadd.u64 %own, %v, %own;\n"
            "st.shared.b64 [%own], %x;\nbar.sync 0;\n";
        if (generic) text += "cvta.shared.u64 %v, %v;\n";
        text += "add.u64 %at, %v, %at;\n";
    } else {
        text += "add.u64 %at, %m, %at;\n";
    }
    text += spelling + (reduces ? " [%at], %bb" : " %old, [%at], %bb") + (cas ? ", %cc" : "") +
            (opcode.flags.has(Flag::policy) ? ", 77" : "") + ";\nst.global" + type + " [%o], %old;\n";
    if (shared) text += "bar.sync 0;\nld.shared.b64 %x, [%own];\nst.global.b64 [%i], %x;\n";
    return text + "ret;\n}\n";
}

// Returns whether an order of these threads explains what each of them returned. A thread that would change nothing
// goes first: in every possible order, at most one thread changes a value that never recurs.
bool some_order_explains(const Opcode& opcode, Bits start, Bits end, std::vector<std::array<Bits, 3>> seen) {
    Bits now = start;
    while (!seen.empty()) {
        std::size_t next = seen.size();
        for (std::size_t i = 0; i < seen.size(); ++i) {
            if (seen[i][0] != now) continue;
            next = i;
            if (after_atomic(opcode, now, seen[i][1], seen[i][2]) == now) break;
        }
        if (next == seen.size()) return false;
        now = after_atomic(opcode, now, seen[next][1], seen[next][2]);
        seen.erase(seen.begin() + static_cast<std::ptrdiff_t>(next));
    }
    return now == end;
}

// A value whose sums with others are exact in any order.
Bits small_float(Type type, Random& random) {
    const Type half = reference::element_of(type);
    const auto one = [&] { return reference::bits_of(half, static_cast<double>(random() % 5) - 2); };
    return reference::is_packed(type) ? one() | one() << 16 : one();
}

void run(Tally& tally, const std::string& spelling, const Opcode& opcode, bool shared, bool meet,
         Random& random) {
    const Bits mask = reference::mask_of(opcode.type);
    const bool floats = emulated::ptx::is_float(opcode.type), reduces = opcode.row->name == "red";
    std::vector<std::uint64_t> memory(threads), values(2 * threads), out(threads);
    std::vector<std::uint32_t> index(threads);
    for (unsigned t = 0; t < threads; ++t) {
        memory[t] = some_value(opcode.type, random) & mask;
        if (meet && floats) memory[t] = small_float(opcode.type, random);
        if (meet && (opcode.flags.has(Flag::inc) || opcode.flags.has(Flag::dec))) memory[t] = random() % 9;
    }
    const std::vector<std::uint64_t> before = memory;
    for (unsigned t = 0; t < threads; ++t) {
        index[t] = meet ? static_cast<std::uint32_t>(random() % crowded) : (t * 5) % threads;
        values[2 * t] = some_value(opcode.type, random) & mask;
        values[2 * t + 1] = some_value(opcode.type, random) & mask;
        const bool counts = opcode.flags.has(Flag::inc) || opcode.flags.has(Flag::dec);
        if (!meet) {
            if (opcode.flags.has(Flag::cas) && random() % 2) values[2 * t] = before[index[t]];
            if (counts && random() % 2) values[2 * t] = (before[index[t]] + random() % 3 - 1) & mask;
            continue;
        }
        values[2 * t] = floats ? small_float(opcode.type, random) : random() & mask;
        if (counts)
            values[2 * t] = 7 + random() % 2;  // such small bounds of inc and dec that the values recur
        if (counts && !reduces) values[2 * t] = 1000;  // so large a bound that no value recurs
        if (opcode.flags.has(Flag::cas)) values[2 * t] = before[index[t]];
        if (opcode.flags.has(Flag::cas)) values[2 * t + 1] = (before[index[t]] + 1 + t) & mask;
    }
    if (meet && reduces && (opcode.flags.has(Flag::inc) || opcode.flags.has(Flag::dec))) {
        for (unsigned t = 0; t < threads; ++t)
            values[2 * t] = 7;  // the final value must not depend on the order
    }
    testing::Device device(kernel_of(spelling, opcode, shared), shared ? 1 : 1 + (random() % 16 == 0));
    if (!device.module().find_kernel("k")->refusal.empty()) {
        return tally.refused(spelling, device.module().find_kernel("k")->refusal);
    }
    if (lacks_a_handler(device)) return tally.fault(opcode, spelling, "is accepted, but nothing runs it");
    const unsigned blocks = shared ? 1 : 2;
    const auto fault = device.launch("k", {blocks}, {threads / blocks}, device.array(memory),
                                     device.array(index), device.array(values), device.array(out));
    if (fault) return tally.fault(opcode, spelling, fault->message);

    const std::string where =
        std::string(meet ? "meeting in " : "alone in ") + (shared ? "shared" : "global");
    if (!meet) {
        for (unsigned t = 0; t < threads; ++t) {
            const Bits old = before[index[t]];
            Answer expected{opcode.type, after_atomic(opcode, old, values[2 * t], values[2 * t + 1])};
            tally.compare(opcode, spelling, expected, memory[index[t]] & mask, [&] { return where; });
            if (!reduces)
                tally.compare(opcode, spelling, {opcode.type, old}, out[t] & mask,
                              [&] { return where + ", returned"; });
        }
        return;
    }
    for (unsigned place = 0; place < crowded; ++place) {
        std::vector<std::array<Bits, 3>> seen;
        Bits end = before[place];
        for (unsigned t = 0; t < threads; ++t) {
            if (index[t] != place) continue;
            seen.push_back({out[t] & mask, values[2 * t], values[2 * t + 1]});
            end = after_atomic(opcode, end, values[2 * t], values[2 * t + 1]);
        }
        const bool order_decides = opcode.flags.has(Flag::exch) || opcode.flags.has(Flag::cas);
        if (!order_decides)
            tally.compare(opcode, spelling, {opcode.type, end}, memory[place] & mask, [&] { return where; });
        // Sums of floats recur, so the order cannot be determined; only the final value is checked.
        if (reduces || floats) continue;
        const bool explained =
            some_order_explains(opcode, before[place], memory[place] & mask, std::move(seen));
        tally.compare(opcode, spelling, {Type::pred, 1}, explained,
                      [&] { return where + ": no order of the threads gives this"; });
    }
}

}  // namespace

void atomic_vectors(Tally& tally, const std::string& spelling, const Opcode& opcode, Random& random) {
    const bool generic = (opcode.flags & FlagSet{Flag::global, Flag::shared, Flag::shared_cluster}).empty();
    for (const bool shared : {false, true}) {
        const bool names_it = !(opcode.flags & FlagSet{Flag::shared, Flag::shared_cluster}).empty();
        if (!generic && names_it != shared) continue;
        run(tally, spelling, opcode, shared, false, random);
        run(tally, spelling, opcode, shared, true, random);
    }
}

}  // namespace vectors
