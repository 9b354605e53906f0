// Registers of 128 bits, vectors of atomics, lop3 with a predicate, and instructions for the L2 cache: each thread has
// 64 bytes to read, 64 to modify and 64 to write.
#include <algorithm>
#include <array>
#include <cstring>

#include "reference/grammar.hpp"
#include "vectors.hpp"

namespace vectors {
namespace {

using reference::Answers;

constexpr unsigned threads = 72, words = 8;
using Words = std::array<std::uint64_t, words>;

// One instruction in its own kernel, and the expected words of a thread.
struct Case {
    std::string spelling;
    Opcode opcode;
    std::string body;  ///< reads %in, works on %work, writes %out
    std::string variables = {};
    unsigned compared_bits = 64;  ///< of each word
    Type type = Type::b64;
};

std::string kernel_of(const Case& c) {
    std::string text =
        header +
        ".const .align 16 .b8 constants[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};\n"
        ".visible .entry k(.param .u64 pin, .param .u64 pwork, .param .u64 pout, .param .align 16 .b8 "
        "pbytes[16]) {\n" +
        c.variables +
        ".reg .b64 %in, %work, %out, %at, %a<9>, %b<9>;\n.reg .b128 %q<5>;\n.reg .b32 %t, %r<9>, %e<9>;\n"
        ".reg .b16 %h<9>, %g<9>;\n.reg .pred %p, %z;\n"
        "ld.param.u64 %in, [pin];\nld.param.u64 %work, [pwork];\nld.param.u64 %out, [pout];\n"
        "mov.u32 %t, %tid.x;\nmul.wide.u32 %at, %t, 128;\nadd.u64 %work, %work, %at;\n"
        "mul.wide.u32 %at, %t, 64;\nadd.u64 %in, %in, %at;\nadd.u64 %out, %out, %at;\n";
    return text + c.body + "ret;\n}\n";
}

// `expected` changes a thread's input, work and output as the instruction should.
template <class Expected>
void run(Tally& tally, const Case& c, Random& random, const Expected& expected) {
    std::vector<Words> in(threads), out(threads);
    // Lines of 128 bytes, aligned: the array's own start is a multiple of 256 on the device.
    std::vector<std::array<std::uint64_t, 16>> work(threads);
    for (unsigned t = 0; t < threads; ++t) {
        for (auto& word : in[t]) word = some_integer(64, random);
        for (auto& word : work[t]) word = some_integer(64, random);
        if (t % 3 == 0) std::copy_n(in[t].begin(), words, work[t].begin());
        out[t].fill(0xa5a5'5a5a'c3c3'3c3cull);
    }
    if (emulated::ptx::is_float(c.type)) {
        const Type element = reference::element_of(c.type);
        const unsigned bits = reference::bits_in(element);
        const auto fill = [&](auto& row) {
            for (auto& word : row) {
                word = 0;
                for (unsigned at = 0; at < 64; at += bits) word |= some_value(element, random) << at;
            }
        };
        for (unsigned t = 0; t < threads; ++t) fill(in[t]), fill(work[t]);
    }
    auto wanted_work = work;
    auto wanted_out = out;
    testing::Device device(kernel_of(c));
    if (!device.module().find_kernel("k")->refusal.empty())
        return tally.refused(c.spelling, device.module().find_kernel("k")->refusal);
    if (lacks_a_handler(device)) return tally.fault(c.opcode, c.spelling, "is accepted, but nothing runs it");
    std::array<std::uint8_t, 16> parameter{};
    for (std::size_t i = 0; i < parameter.size(); ++i) parameter[i] = static_cast<std::uint8_t>(17 * i + 3);
    if (const auto fault = device.launch("k", {1}, {threads}, device.array(in), device.array(work),
                                         device.array(out), parameter))
        return tally.fault(c.opcode, c.spelling, fault->message);
    for (unsigned t = 0; t < threads; ++t) {
        expected(t, in[t], wanted_work[t], wanted_out[t]);
        const unsigned step = c.compared_bits;
        const auto compare = [&](const auto& wanted, const auto& got, const char* which) {
            for (std::size_t k = 0; k < wanted.size(); ++k) {
                for (unsigned at = 0; at < 64; at += step) {
                    const Bits mask = step == 64 ? ~Bits{0} : (Bits{1} << step) - 1;
                    tally.compare(c.opcode, c.spelling, {c.type, wanted[k] >> at & mask}, got[k] >> at & mask,
                                  [&] {
                                      return std::string(which) + " of thread " + std::to_string(t) +
                                             ", word " + std::to_string(k);
                                  });
                }
            }
        };
        compare(wanted_work[t], work[t], "work");
        compare(wanted_out[t], out[t], "output");
    }
}

constexpr const char* store_q1 =
    "mov.b128 {%a1, %a2}, %q1;\nst.global.b64 [%out], %a1;\nst.global.b64 [%out+8], %a2;\n";
constexpr const char* load_ab =
    "ld.global.b64 %a1, [%in];\nld.global.b64 %a2, [%in+8];\nld.global.b64 %b1, [%in+16];\nld.global.b64 %b2, [%in+24];\n";

std::string space_of(const Opcode& opcode) {
    if (opcode.flags.has(Flag::shared_cluster)) return "shared";
    for (const Flag space : {Flag::shared, Flag::local, Flag::constant, Flag::param}) {
        if (opcode.flags.has(space)) return std::string(spelling_of(space));
    }
    return "global";
}

// Puts the address of 16 bytes in the space into %at. In spaces that a kernel can write, they are the thread's own.
std::string place(const std::string& space, std::string& variables) {
    if (space == "global") return "mov.u64 %at, %work;\n";
    if (space == "const") return "mov.u64 %at, constants;\n";
    if (space == "param") return "mov.u64 %at, pbytes;\n";
    const bool shared = space == "shared";
    variables = shared ? ".shared .align 16 .b8 s[1152];\n" : ".local .align 16 .b8 s[16];\n";
    return std::string("mov.u64 %at, s;\n") +
           (shared ? "mul.wide.u32 %a1, %t, 16;\nadd.u64 %at, %at, %a1;\n" : "");
}

std::string policy(const Opcode& opcode) { return opcode.flags.has(Flag::policy) ? ", 77" : ""; }

void access(Tally& tally, const std::string& spelling, const Opcode& opcode, Random& random) {
    const std::string space = space_of(opcode);
    Case c{spelling, opcode, ""};
    c.body = place(space, c.variables) + load_ab;
    const bool copied = space == "shared" || space == "local";
    if (opcode.row->name == "ld") {
        if (copied) c.body += "st." + space + ".b64 [%at], %a1;\nst." + space + ".b64 [%at+8], %a2;\n";
        c.body += spelling + " %q1, [%at]" + policy(opcode) + ";\n" + store_q1;
        return run(tally, c, random, [&](unsigned, const Words& in, auto& work, Words& out) {
            for (unsigned k = 0; k < 2; ++k) {
                out[k] = copied ? in[k] : work[k];
                if (space == "global" || copied) continue;
                std::uint8_t bytes[8];
                for (unsigned i = 0; i < 8; ++i) {
                    const unsigned at = 8 * k + i;
                    bytes[i] = static_cast<std::uint8_t>(space == "const" ? at + 1 : 17 * at + 3);
                }
                std::memcpy(&out[k], bytes, 8);
            }
        });
    }
    c.body += "mov.b128 %q1, {%a1, %a2};\n" + spelling + " [%at], %q1" + policy(opcode) + ";\n";
    if (copied) {
        c.body += "ld." + space + ".b64 %b1, [%at];\nld." + space +
                  ".b64 %b2, [%at+8];\nst.global.b64 [%work], %b1;\nst.global.b64 [%work+8], %b2;\n";
    }
    run(tally, c, random,
        [](unsigned, const Words& in, auto& work, Words&) { std::copy_n(in.begin(), 2, work.begin()); });
}

void move(Tally& tally, const std::string& spelling, const Opcode& opcode, Random& random) {
    Case c{spelling, opcode,
           std::string(load_ab) +
               "mov.b128 %q1, {%a1, %a2};\nmov.b128 %q2, {%b1, %b2};\nmov.b128 %q3, "
               "%q1;\nmov.b128 %q1, %q2;\nmov.b128 {%a2, %a1}, %q3;\nmov.b128 %q3, {%a2, %a1};\n"
               "mov.b128 {%a3, _}, %q3;\nst.global.b64 [%out+16], %a3;\n" +
               store_q1};
    run(tally, c, random, [](unsigned, const Words& in, auto&, Words& out) {
        out[0] = in[2];
        out[1] = in[3];
        out[2] = in[0];
    });
}

void exchange(Tally& tally, const std::string& spelling, const Opcode& opcode, Random& random) {
    const bool cas = opcode.flags.has(Flag::cas);
    Case c{spelling, opcode, ""};
    const std::string space = space_of(opcode);
    c.body = place(space, c.variables) + load_ab + "mov.b128 %q2, {%a1, %a2};\nmov.b128 %q3, {%b1, %b2};\n";
    if (space == "shared")
        c.body += "ld.global.v2.b64 {%a3, %a4}, [%work];\nst.shared.v2.b64 [%at], {%a3, %a4};\n";
    c.body += spelling + " %q1, [%at], %q2" + (cas ? ", %q3" : "") + ";\n" + store_q1;
    if (space == "shared")
        c.body += "ld.shared.v2.b64 {%a3, %a4}, [%at];\nst.global.v2.b64 [%work], {%a3, %a4};\n";
    run(tally, c, random, [&](unsigned, const Words& in, auto& work, Words& out) {
        std::copy_n(work.begin(), 2, out.begin());
        const bool equal = work[0] == in[0] && work[1] == in[1];
        if (cas && equal) std::copy_n(in.begin() + 2, 2, work.begin());
        if (!cas) std::copy_n(in.begin(), 2, work.begin());
    });
}

// Each element in memory becomes the sum, minimum or maximum of itself and the thread's element.
void vector_atomic(Tally& tally, const std::string& spelling, const Opcode& opcode, Random& random) {
    const bool reduces = opcode.row->name == "red";
    const unsigned lanes = opcode.flags.has(Flag::v8) ? 8 : opcode.flags.has(Flag::v4) ? 4 : 2;
    const unsigned bits = reference::bits_in(opcode.type), bytes = bits / 8;
    const char* const given = bits == 16 ? "%h" : "%r";
    const char* const got = bits == 16 ? "%g" : "%e";
    const auto list = [&](const char* letter) {
        std::string made = "{";
        for (unsigned k = 0; k < lanes; ++k)
            made += (k ? ", " : "") + std::string(letter) + std::to_string(k);
        return made + "}";
    };
    const std::string type = ".b" + std::to_string(bits);
    Case c{spelling, opcode, ""};
    for (unsigned k = 0; k < lanes; ++k)
        c.body += "ld.global" + type + " " + given + std::to_string(k) + ", [%in+" +
                  std::to_string(k * bytes) + "];\n";
    // The results overwrite the sources in half of the cases.
    const bool in_place = random() % 2;
    const char* const results = in_place ? given : got;
    c.body += spelling + (reduces ? " [%work], " : " " + list(results) + ", [%work], ") + list(given) +
              policy(opcode) + ";\n";
    for (unsigned k = 0; !reduces && k < lanes; ++k)
        c.body += "st.global" + type + " [%out+" + std::to_string(k * bytes) + "], " + results +
                  std::to_string(k) + ";\n";
    c.type = reference::element_of(opcode.type);
    c.compared_bits = reference::bits_in(c.type);
    const std::string name = opcode.flags.has(Flag::min)   ? "min"
                             : opcode.flags.has(Flag::max) ? "max"
                                                           : "add";
    const std::string suffix(emulated::ptx::type_names[static_cast<unsigned>(c.type)].name);
    const Opcode plain = *known(name + "." + suffix);
    run(tally, c, random, [&](unsigned, const Words& in, auto& work, Words& out) {
        for (unsigned k = 0; k < lanes * bits / c.compared_bits; ++k) {
            const unsigned word = k * c.compared_bits / 64, at = k * c.compared_bits % 64;
            const Bits mask = (Bits{1} << c.compared_bits) - 1;
            const Bits sources[] = {work[word] >> at & mask, in[word] >> at & mask};
            Answers answers;
            reference::family_of(plain)->evaluate({plain, sources}, answers);
            if (!reduces) out[word] = (out[word] & ~(mask << at)) | sources[0] << at;
            work[word] = (work[word] & ~(mask << at)) | (answers.at[0].bits & mask) << at;
        }
    });
}

void lookup(Tally& tally, const std::string& spelling, const Opcode& opcode, Random& random) {
    const auto table = static_cast<unsigned>(random() % 256);
    const bool negated = random() % 2;
    Case c{
        spelling, opcode,
        "ld.global.v2.b32 {%r1, %r2}, [%in];\nld.global.v2.b32 {%r3, %r4}, [%in+8];\nand.b32 %r5, %r1, %r2;\n"
        "and.b32 %r4, %r4, 1;\nsetp.ne.u32 %z, %r4, 0;\n" +
            spelling + " %r0|%p, %r1, %r2, %r3, " + std::to_string(table) + ", " + (negated ? "!" : "") +
            "%z;\nselp.u32 %r4, 1, 0, %p;\nst.global.v2.b32 [%out], {%r0, %r4};\n"};
    run(tally, c, random, [&](unsigned, const Words& in, auto&, Words& out) {
        Bits made = 0;
        for (unsigned bit = 0; bit < 32; ++bit) {
            const unsigned row = static_cast<unsigned>((in[0] >> bit & 1) << 2 |
                                                       (in[0] >> (32 + bit) & 1) << 1 | (in[1] >> bit & 1));
            made |= Bits{table >> row & 1} << bit;
        }
        const bool other = ((in[1] >> 32 & 1) != 0) != negated, any = made != 0;
        out[0] = made | Bits{opcode.flags.has(Flag::and_) ? any && other : any || other} << 32;
    });
}

// Instructions that change at most the 128 bytes at %work; the thread stores its number to show that it continued.
void line(Tally& tally, const std::string& spelling, const Opcode& opcode, Random& random) {
    const std::string_view name = opcode.row->name;
    std::string operands;
    if (name == "createpolicy") {
        operands = opcode.flags.has(Flag::range) ? " %a1, [%work], 64, 128"
                   : opcode.flags.has(Flag::cvt) ? " %a1, %in"
                                                 : " %a1, 0.5";
    } else if (name == "pmevent") {
        operands = " 3";
    } else if (name != "brkpt") {
        operands = " [%work], 128";
    }
    Case c{spelling, opcode, spelling + operands + ";\ncvt.u64.u32 %a2, %t;\nst.global.b64 [%out], %a2;\n"};
    run(tally, c, random, [&](unsigned t, const Words&, auto& work, Words& out) {
        out[0] = t;
        if (name == "discard") work.fill(0xcbcb'cbcb'cbcb'cbcbull);
    });
}

}  // namespace

void wide_vectors(Tally& tally) {
    Random random(128);
    for (const reference::Syntax& syntax : reference::wide_syntax()) {
        for (const std::string& spelling : reference::spellings_of(syntax)) {
            const auto opcode = known(spelling);
            if (!opcode) {
                tally.refused(spelling, "not in the table");
                continue;
            }
            const std::string_view name = opcode->row->name;
            const bool atomic = name == "atom" || name == "red";
            const auto test = name == "lop3"                         ? lookup
                              : name == "mov"                        ? move
                              : atomic && opcode->type == Type::b128 ? exchange
                              : atomic                               ? vector_atomic
                              : opcode->type == Type::b128           ? access
                                                                     : line;
            test(tally, spelling, *opcode, random);
            if (name == "lop3") {
                for (unsigned round = 0; round < 20; ++round) lookup(tally, spelling, *opcode, random);
            }
        }
    }
}

}  // namespace vectors
