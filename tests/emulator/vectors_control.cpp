// Barriers, fences, branches, calls and ends of threads: kernels whose results depend on them.
#include <functional>
#include <stdexcept>

#include "reference/grammar.hpp"
#include "vectors.hpp"

namespace vectors {
namespace {

constexpr unsigned threads = 96;
constexpr std::uint32_t poison = 0xa5a5'5a5a;

// The body of a kernel that computes and stores %r from %a, a random number of the thread; and the expected results.
struct Program {
    std::string declarations, body, functions;
    std::function<std::uint32_t(const std::vector<std::uint32_t>& in, unsigned thread)> expected;
    bool traps = false;
};

std::string kernel_of(const Program& program) {
    return header + program.functions +
           ".visible .entry k(.param .u64 pin, .param .u64 pout) {\n.shared .align 4 .b32 s[96];\n"
           ".reg .b64 %in, %out, %at, %own;\n.reg .b32 %t, %a, %r, %n, %x, %y;\n.reg .pred %p, %q;\n" +
           program.declarations +
           "ld.param.u64 %in, [pin];\nld.param.u64 %out, [pout];\nmov.u32 %t, %tid.x;\n"
           "mul.wide.u32 %at, %t, 4;\n"
           "add.u64 %in, %in, %at;\nadd.u64 %out, %out, %at;\nld.global.u32 %a, [%in];\nmov.u64 %own, s;\n"
           "add.u64 %own, %own, %at;\nmov.u32 %r, 0;\n" +
           program.body + "st.global.u32 [%out], %r;\nret;\n}\n";
}

// Thread t writes %a into shared memory; after `between`, it reads what thread `t xor distance` wrote.
Program message(const std::string& between, unsigned distance) {
    const std::string far = std::to_string(distance);
    return {"",
            "st.shared.u32 [%own], %a;\n" + between + "xor.b32 %n, %t, " + far +
                ";\nmul.wide.u32 %at, %n, 4;\nmov.u64 %own, s;\n"
                "add.u64 %own, %own, %at;\nld.shared.u32 %r, [%own];\n",
            "", [distance](const auto& in, unsigned t) { return in[t ^ distance]; }};
}

Program barrier(const std::string& spelling, const Opcode& opcode, unsigned variant) {
    if (opcode.flags.has(Flag::warp)) return message(spelling + " 0xffffffff;\n", 1 + variant * 6);
    if (opcode.flags.has(Flag::sync)) {
        // All 96 threads meet, at a barrier of any number, with or without the count.
        static const char* const operands[] = {" 0;\n", " 5;\n", " 3, 96;\n"};
        const Program once = message(spelling + operands[variant % 3], variant % 2 ? 31 : 1);
        if (variant < 3) return once;
        // Two warps meet at another barrier, the third does not take part.
        Program some = message(spelling + " 2, 64;\n", 33);
        some.body = "setp.ge.u32 %p, %t, 64;\n@%p bra OVER;\n" + some.body + "OVER:\n";
        some.expected = [](const auto& in, unsigned t) { return t < 64 ? in[(t ^ 33)] : 0; };
        return some;
    }
    // Two warps arrive and continue, the third waits for both.
    const std::string waits = spelling.substr(0, spelling.find(".arrive")) + ".sync" +
                              (opcode.flags.has(Flag::aligned) ? ".aligned" : "");
    return {"",
            "st.shared.u32 [%own], %a;\nsetp.ge.u32 %p, %t, 64;\n@%p bra WAITS;\n" + spelling +
                " 1, 96;\nbra OVER;\nWAITS:\n" + waits +
                " 1, 96;\nsub.u32 %n, %t, 64;\nmul.wide.u32 %at, %n, 4;\nmov.u64 %own, s;\n"
                "add.u64 %own, %own, %at;\n"
                "ld.shared.u32 %r, [%own];\nld.shared.u32 %x, [%own+128];\nadd.u32 %r, %r, %x;\nOVER:\n",
            "", [](const auto& in, unsigned t) { return t < 64 ? 0 : in[t - 64] + in[t - 32]; }};
}

// Two consecutive reductions: how many threads have an odd number, or whether all or any have one; then the same for
// even numbers.
Program reduction(const std::string& spelling, const Opcode& opcode, unsigned variant) {
    static const char* const barriers[] = {" 0, ", " 5, 96, ", " 2, 64, "};
    const unsigned taking_part = variant == 2 ? 64 : threads;
    const bool counts = opcode.flags.has(Flag::popc);
    const std::string one = spelling + (counts ? " %x," : " %q,") + barriers[variant];
    const std::string number = counts ? "" : "selp.u32 %x, 1, 0, %q;\n";
    // Mostly odd numbers in one variant, mostly even ones in another, so that `and` and `or` have both results.
    const std::string skew = variant == 1 ? "or.b32 %a, %a, 1;\n" : "";
    Program made{"",
                 "setp.ge.u32 %p, %t, " + std::to_string(taking_part) + ";\n@%p bra OVER;\n" + skew +
                     "and.b32 %x, %a, 1;\nsetp.ne.u32 %p, %x, 0;\n" + one + "%p;\n" + number +
                     "mul.lo.u32 %r, %x, 1000;\n" + one + "!%p;\n" + number + "add.u32 %r, %r, %x;\nOVER:\n",
                 "",
                 {}};
    made.expected = [=](const std::vector<std::uint32_t>& in, unsigned t) -> std::uint32_t {
        if (t >= taking_part) return 0;
        std::uint32_t odd = 0;
        for (unsigned k = 0; k < taking_part; ++k) odd += (in[k] & 1) | (variant == 1 ? 1u : 0u);
        const auto answer = [&](std::uint32_t yes) -> std::uint32_t {
            return counts ? yes : opcode.flags.has(Flag::and_) ? yes == taking_part : yes != 0;
        };
        return 1000 * answer(odd) + answer(taking_part - odd);
    };
    return made;
}

// Thread t reads from global memory what thread 95 - t wrote before the fence and a barrier.
Program fence(const std::string& spelling) {
    return {"",
            "add.u32 %x, %a, 7;\nst.global.u32 [%out], %x;\n" + spelling +
                ";\nbar.sync 0;\nsub.u32 %n, 95, %t;\nsub.u32 %x, %n, %t;\nmul.wide.s32 %at, %x, 4;\n"
                "add.s64 %at, %out, %at;\nld.global.u32 %r, [%at];\n" +
                spelling + ";\nbar.sync 0;\n",
            "", [](const auto& in, unsigned t) { return in[95 - t] + 7; }};
}

Program nanosleep(const std::string& spelling) {
    return {"",
            "mov.u32 %r, %a;\nand.b32 %x, %a, 15;\n" + spelling + " %x;\n" + spelling +
                " 3;\nxor.b32 %r, %r, %x;\n",
            "", [](const auto& in, unsigned t) { return in[t] ^ (in[t] & 15); }};
}

// A loop that sums 0..n-1, with the same n for all threads if the branch is .uni, and a branch forward out of it.
Program branches(const std::string& spelling, bool uniform) {
    return {"",
            std::string(uniform ? "mov.u32 %n, 11;\n" : "and.b32 %n, %a, 15;\n") +
                "mov.u32 %x, 0;\nAGAIN:\nsetp.ge.u32 %p, %x, %n;\n@%p " + spelling +
                " OVER;\nadd.u32 %r, %r, %x;\n"
                "add.u32 %x, %x, 1;\n" +
                spelling + " AGAIN;\nmov.u32 %r, 0xbad;\nOVER:\n",
            "", [uniform](const auto& in, unsigned t) {
                const std::uint32_t n = uniform ? 11 : in[t] & 15;
                return n == 0 ? 0 : n * (n - 1) / 2;
            }};
}

// Each thread jumps to its number's label of a list that names some labels twice, adjacent and apart.
Program indexed_branches(const std::string& spelling) {
    return {
        "",
        "and.b32 %n, %a, 7;\nLIST: .branchtargets ZERO, ONE, ONE, THREE, ZERO, FIVE, FIVE, SEVEN;\n" +
            spelling +
            " %n, LIST;\nZERO: mov.u32 %r, 10;\nbra OVER;\nFIVE: add.u32 %r, %n, 50;\nbra OVER;\n"
            "ONE: add.u32 %r, %n, 20;\nbra OVER;\nSEVEN: mov.u32 %r, 70;\nTHREE: add.u32 %r, %r, 3;\nOVER:\n",
        "", [](const auto& in, unsigned t) {
            const std::uint32_t n = in[t] & 7;
            const std::uint32_t results[] = {10, 21, 22, 3, 10, 55, 56, 73};
            return results[n];
        }};
}

// Some threads return early (none with ret.uni). The caller adds 100 to the returned value.
Program calls(const std::string& call, const std::string& ret, bool uniform) {
    const std::string guard = uniform ? "setp.lt.u32 %p, %x, 1;\n" : "setp.lt.u32 %p, %x, 8;\n";
    return {"",
            "{\n.param .b32 p0;\n.param .b32 r0;\nand.b32 %x, %a, 15;\nadd.u32 %x, %x, " +
                std::string(uniform ? "1" : "0") + ";\nst.param.b32 [p0], %x;\n" + call +
                " (r0), f, (p0);\nld.param.b32 %r, [r0];\n}\nadd.u32 %r, %r, 100;\n",
            ".func (.param .b32 result) f(.param .b32 given) {\n.reg .b32 %x, %y;\n.reg .pred %p;\n"
            "ld.param.b32 %x, [given];\nst.param.b32 [result], 5;\n" +
                guard + "@%p " + ret + ";\nmul.lo.u32 %y, %x, %x;\nst.param.b32 [result], %y;\n" + ret +
                ";\n}\n",
            [uniform](const auto& in, unsigned t) {
                const std::uint32_t x = (in[t] & 15) + (uniform ? 1 : 0);
                return (x < (uniform ? 1u : 8u) ? 5 : x * x) + 100;
            }};
}

Program exits(const std::string& spelling) {
    return {"", "mov.u32 %r, %a;\nand.b32 %x, %a, 1;\nsetp.ne.u32 %p, %x, 0;\n@%p " + spelling + ";\n", "",
            [](const auto& in, unsigned t) { return in[t] & 1 ? poison : in[t]; }};
}

// Thread 77 traps if `reached`, else no thread does.
Program traps(const std::string& spelling, bool reached) {
    Program made{"",
                 "mov.u32 %r, %a;\nsetp.eq.u32 %p, %t, " + std::string(reached ? "77" : "1000") + ";\n@%p " +
                     spelling + ";\n",
                 "", [](const auto& in, unsigned t) { return in[t]; }};
    made.traps = reached;
    return made;
}

// Two allocations are disjoint, and one after the stack was restored has the address of the first.
Program allocates(const Opcode& opcode) {
    const std::string type(opcode.type == Type::u32 ? "u32" : "u64");
    return {".reg ." + type + " %top, %one, %two, %again;\n",
            "stacksave." + type + " %top;\nalloca." + type +
                " %one, 16;\nst.local.u32 [%one+12], %a;\nalloca." + type +
                " %two, 40, 16;\nst.local.u32 [%two], 7;\nld.local.u32 %r, [%one+12];\nstackrestore." + type +
                " %top;\nalloca." + type + " %again, 16;\nsetp.eq." + type +
                " %p, %again, %one;\nselp.u32 %n, 5, 0, %p;\nadd.u32 %r, %r, %n;\n",
            "", [](const auto& in, unsigned t) { return in[t] + 5; }};
}

std::vector<Program> programs_of(const std::string& spelling, const Opcode& opcode) {
    const std::string_view name = opcode.row->name;
    const bool uniform = opcode.flags.has(Flag::uni);
    if (name == "bar" || name == "barrier") {
        std::vector<Program> made;
        if (opcode.flags.has(Flag::red)) {
            for (unsigned variant = 0; variant < 3; ++variant)
                made.push_back(reduction(spelling, opcode, variant));
            return made;
        }
        for (unsigned variant = 0; variant < 4; ++variant) made.push_back(barrier(spelling, opcode, variant));
        return made;
    }
    if (name == "membar" || name == "fence") return {fence(spelling)};
    if (name == "nanosleep") return {nanosleep(spelling)};
    if (name == "bra" && uniform) return {branches(spelling, true)};
    if (name == "bra") return {branches(spelling, true), branches(spelling, false)};
    if (name == "brx") return {indexed_branches(spelling)};
    if (name == "call") return {calls(spelling, "ret", false)};
    if (name == "ret") return {calls("call", spelling, uniform)};
    if (name == "exit") return {exits(spelling)};
    if (name == "trap") return {traps(spelling, false), traps(spelling, true)};
    if (name == "alloca" || name == "stacksave" || name == "stackrestore") return {allocates(opcode)};
    throw std::logic_error("no program for " + spelling);
}

void run(Tally& tally, const std::string& spelling, const Opcode& opcode, const Program& program,
         Random& random) {
    std::vector<std::uint32_t> in(threads), out(threads, poison);
    for (auto& value : in) value = static_cast<std::uint32_t>(random());
    testing::Device device(kernel_of(program));
    const std::string& refusal = device.module().find_kernel("k")->refusal;
    if (!refusal.empty()) return tally.refused(spelling, refusal);
    const auto fault = device.launch("k", {1}, {threads}, device.array(in), device.array(out));
    if (program.traps) {
        const bool right = fault && fault->kind == emulated::machine::Fault::Kind::illegal_instruction &&
                           fault->thread == emulated::machine::Dim3{77, 0, 0};
        tally.compare(opcode, spelling, {Type::pred, 1}, right,
                      [] { return "the trap is not reported as one"; });
        return;
    }
    if (fault) return tally.fault(opcode, spelling, fault->message);
    for (unsigned t = 0; t < threads; ++t) {
        tally.compare(opcode, spelling, {Type::b32, program.expected(in, t)}, out[t],
                      [&] { return "thread " + std::to_string(t); });
    }
}

// st.param before a call, ld.param in the callee and after the call, for every type and vector length.
void parameters(Tally& tally, const std::string& suffix, Random& random) {
    const std::string load = "ld.param" + suffix, store = "st.param" + suffix;
    const auto loads = known(load), stores = known(store);
    if (!loads || !stores) return tally.refused(load, "not in the table");
    const unsigned lanes = loads->flags.has(Flag::v4) ? 4 : loads->flags.has(Flag::v2) ? 2 : 1;
    const unsigned bytes = emulated::ptx::bytes_of(loads->type);
    const std::string type(register_type(register_bytes(loads->type)));
    std::string registers, fill, spill, list;
    for (unsigned k = 0; k < lanes; ++k) {
        const std::string name = "%v" + std::to_string(k), slot = std::to_string(8 * k);
        registers += ".reg " + type + " " + name + ";\n";
        fill += "ld.global" + type + " " + name + ", [%in+" + slot + "];\n";
        spill += "st.global" + type + " [%out+" + slot + "], " + name + ";\n";
        list += (k ? ", " : "") + name;
    }
    if (lanes > 1) list = "{" + list + "}";
    const std::string text =
        header + ".func (.param .align 16 .b8 result[32]) f(.param .align 16 .b8 given[32]) {\n" + registers +
        load + " " + list + ", [given];\n" + store + " [result], " + list + ";\nret;\n}\n" +
        ".visible .entry k(.param .u64 pin, .param .u64 pout) {\n.reg .b64 %in, %out, %at;\n.reg .b32 %t;\n" +
        registers +
        "ld.param.u64 %in, [pin];\nld.param.u64 %out, [pout];\nmov.u32 %t, %tid.x;\n"
        "mul.wide.u32 %at, %t, 32;\n"
        "add.u64 %in, %in, %at;\nadd.u64 %out, %out, %at;\n" +
        fill + "{\n.param .align 16 .b8 p0[32];\n.param .align 16 .b8 r0[32];\n" + store + " [p0], " + list +
        ";\ncall (r0), f, (p0);\n" + load + " " + list + ", [r0];\n}\n" + spill + "ret;\n}\n";
    std::vector<std::uint64_t> in(4 * threads), out(4 * threads);
    for (auto& value : in) value = random();
    testing::Device device(text);
    const std::string& refusal = device.module().find_kernel("k")->refusal;
    if (!refusal.empty()) return tally.refused(load, refusal);
    if (lacks_a_handler(device)) return tally.fault(*loads, load, "is accepted, but nothing runs it");
    if (const auto fault = device.launch("k", {1}, {threads}, device.array(in), device.array(out))) {
        return tally.fault(*loads, load, fault->message);
    }
    const unsigned held = 8 * register_bytes(loads->type);
    const Bits mask = held == 64 ? ~Bits{0} : (Bits{1} << held) - 1;
    const Bits value_mask = bytes == 8 ? ~Bits{0} : (Bits{1} << (8 * bytes)) - 1;
    for (unsigned t = 0; t < threads; ++t) {
        for (unsigned k = 0; k < lanes; ++k) {
            Bits expected = in[4 * t + k] & value_mask;
            if (!emulated::ptx::is_float(loads->type)) {
                expected = static_cast<Bits>(reference::integer_of(loads->type, expected)) & mask;
            }
            const auto where = [&] { return "through a call, thread " + std::to_string(t); };
            tally.compare(*loads, load, {Type::b64, expected}, out[4 * t + k], where);
            tally.compare(*stores, store, {Type::b64, expected}, out[4 * t + k], where);
        }
    }
}

}  // namespace

void control_vectors(Tally& tally) {
    Random random(99);
    for (const reference::Syntax& syntax : reference::control_syntax()) {
        for (const std::string& spelling : reference::spellings_of(syntax)) {
            const auto opcode = known(spelling);
            if (!opcode) {
                tally.refused(spelling, "not in the table");
                continue;
            }
            for (const Program& program : programs_of(spelling, *opcode))
                run(tally, spelling, *opcode, program, random);
        }
    }
    for (const reference::Syntax& syntax :
         {reference::Syntax{"{.v2}($memory)"}, reference::Syntax{".v4($upto32)"}}) {
        for (const std::string& suffix : reference::spellings_of(syntax)) parameters(tally, suffix, random);
    }
}

}  // namespace vectors
