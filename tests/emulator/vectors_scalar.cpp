// Every instruction of one thread, in every legal spelling: a kernel each, 5 times 288 threads in blocks that are not a
// multiple of a warp, compared with the reference.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "reference/grammar.hpp"
#include "vectors.hpp"

namespace vectors {
namespace {

using reference::Answers;
using reference::Call;
using reference::Family;
using reference::Signature;

constexpr unsigned threads = 288, block = 72, rounds = 5;
constexpr Bits poison = 0xa5a5'5a5a'c3c3'3c3cull;

// How an instruction is written, beyond its opcode.
struct Form {
    bool pair = false;          ///< setp p|q
    bool negated = false;       ///< setp ..., !c
    unsigned result_bytes = 0;  ///< a register wider than cvt's type
    unsigned source_bytes = 0;
};

struct Case {
    std::string spelling;
    Opcode opcode;
    const Family* family;
    Signature signature;
    Form form;
};

// Makes related operands: equal and opposite ones, sums that cancel, arguments in range where PTX leaves others open.
void relate(const Case& c, std::vector<Bits>& values, Random& random) {
    const Signature& s = c.signature;
    if (s.source_count >= 2 && s.sources[0] == s.sources[1] && random() % 8 == 0) {
        values[1] = values[0];
        if (emulated::ptx::is_float(s.sources[1]) && random() % 2) {
            values[1] ^= reference::sign_bit(reference::element_of(s.sources[1]));
        }
    }
    if ((c.family->name == "fma" || c.family->name == "mad:float") && random() % 4 == 0 &&
        !reference::is_packed(c.opcode.type)) {
        // The addend nearly cancels the product.
        const reference::Number a(reference::value_of(c.opcode.type, values[0])),
            b(reference::value_of(c.opcode.type, values[1]));
        values[2] = reference::sign_bit(c.opcode.type) ^
                    reference::rounded(c.opcode.type, MPFR_RNDN, [&](mpfr_ptr r, mpfr_rnd_t rounding) {
                        return mpfr_mul(r, a, b, rounding);
                    });
    }
    if (c.opcode.type == Type::f32 && s.source_count >= 2 && random() % 8 == 0) {
        // Products about the least normal number, 2^-126, which .ftz affects.
        for (unsigned i = 0; i < 2; ++i)
            values[i] = 0x2000'0000 + random() % 17 - 8 + (random() % 2 ? reference::sign_bit(Type::f32) : 0);
        if (s.source_count == 3) values[2] &= reference::sign_bit(Type::f32) | 0x0080'0001;
    }
    if (c.family->name == "cvt" && s.sources[0] == Type::f64 && random() % 8 == 0) {
        const Bits step = Bits{1} << 27, sign = random() % 2 ? reference::sign_bit(Type::f64) : 0;
        values[0] = (0x3810'0000'0000'0000 + random() % 17 * step - 8 * step) | sign;
    }
    if (c.family->name == "ex2" && random() % 3 == 0) {
        // Results between the least subnormal and overflow.
        for (unsigned at = 0; at < reference::bits_in(c.opcode.type); at += 16) {
            const Type element = reference::element_of(c.opcode.type);
            const reference::Number power(static_cast<double>(static_cast<int>(random() % 3200) - 1600) / 10);
            const Bits bits = reference::rounded(element, MPFR_RNDN, [&](mpfr_ptr r, mpfr_rnd_t rounding) {
                return mpfr_set(r, power, rounding);
            });
            if (!reference::is_packed(c.opcode.type)) {
                values[0] = bits;
                break;
            }
            values[0] = (values[0] & ~(Bits{0xffff} << at)) | bits << at;
        }
    }
    if (c.family->name == "fns") {
        values[1] &= 31;
        if (random() % 4) values[2] = (random() % 67 - 33) & 0xffff'ffff;
    }
}

// A kernel that loads the operands, runs the instruction and stores the results. Each value has a slot of eight bytes.
std::string kernel_of(const Case& c, Bits immediate) {
    const Signature& s = c.signature;
    const bool carries = c.family->results == "Tp" && c.opcode.row->operands == "*";
    std::string registers, loads, stores, operands;
    const auto declare = [&](const std::string& name, std::string_view type) {
        registers += ".reg " + std::string(type) + " " + name + ";\n";
    };
    std::string before, after, result;
    for (unsigned i = 0; i < s.result_count; ++i) {
        const std::string name = "%d" + std::to_string(i), slot = std::to_string(8 * i);
        const bool is_pred = s.results[i] == Type::pred;
        if (is_pred && carries) {
            declare(name, ".b32");
            after = "addc.u32 " + name + ", 0, 0;\n";
            stores += "st.global.b32 [%out+" + slot + "], " + name + ";\n";
            continue;
        }
        if (is_pred) {
            if (i > 0 && !c.form.pair) break;
            declare(name, ".pred");
            declare(name + "n", ".b32");
            stores += "selp.u32 " + name + "n, 1, 0, " + name + ";\nst.global.b32 [%out+" + slot + "], " +
                      name + "n;\n";
            result += (i ? "|" : "") + name;
            continue;
        }
        const unsigned bytes = c.form.result_bytes ? c.form.result_bytes : register_bytes(s.results[i]);
        declare(name, register_type(bytes));
        stores += "st.global" + std::string(register_type(bytes)) + " [%out+" + slot + "], " + name + ";\n";
        result += name;
    }
    for (unsigned i = 0; i < s.source_count; ++i) {
        const std::string name = "%s" + std::to_string(i), slot = std::to_string(8 * i);
        if (s.source_letters[i] == 'i') {
            operands += ", " + std::to_string(immediate);
            continue;
        }
        if (s.sources[i] == Type::pred) {
            declare(name + "n", ".b32");
            loads += "ld.global.b32 " + name + "n, [%in+" + slot + "];\n";
            if (carries) {
                before = "add.cc.u32 " + name + "n, " + name + "n, 0xffffffff;\n";
                continue;
            }
            declare(name, ".pred");
            loads += "setp.ne.u32 " + name + ", " + name + "n, 0;\n";
            operands += std::string(", ") + (c.form.negated ? "!" : "") + name;
            continue;
        }
        const unsigned bytes = c.form.source_bytes ? c.form.source_bytes : register_bytes(s.sources[i]);
        declare(name, register_type(bytes));
        loads += "ld.global" + std::string(register_type(bytes)) + " " + name + ", [%in+" + slot + "];\n";
        operands += ", " + name;
    }
    return header +
           ".visible .entry k(.param .u64 pin, .param .u64 pout) {\n.reg .b64 %in, %out, %at;\n"
           ".reg .b32 %t, %n, %b;\n" +
           registers +
           "ld.param.u64 %in, [pin];\nld.param.u64 %out, [pout];\nmov.u32 %t, %tid.x;\nmov.u32 %n, %ntid.x;\n"
           "mov.u32 %b, %ctaid.x;\nmad.lo.u32 %t, %n, %b, %t;\nmul.wide.u32 %at, %t, 32;\n"
           "add.u64 %in, %in, %at;\n"
           "add.u64 %out, %out, %at;\n" +
           loads + before + c.spelling + " " + result + operands + ";\n" + after + stores + "ret;\n}\n";
}

// The bits of a result in a register, which may be wider than its type: an integer is extended by the type's sign.
Bits in_register(const Answer& answer, unsigned bytes) {
    const Bits mask = bytes == 8 ? ~Bits{0} : (Bits{1} << (8 * bytes)) - 1;
    if (!reference::is_integer(answer.type)) return answer.bits & mask;
    return static_cast<Bits>(reference::integer_of(answer.type, answer.bits)) & mask;
}

std::string words_of(const Signature& s, const std::vector<Bits>& values) {
    std::string words = "sources";
    for (unsigned i = 0; i < s.source_count; ++i) {
        char text[40];
        std::snprintf(text, sizeof text, " %llx", static_cast<unsigned long long>(values[i]));
        words += text;
    }
    return words;
}

void run(Tally& tally, const Case& c, Random& random) {
    const Signature& s = c.signature;
    const Bits immediate = random() & 0xff;
    std::vector<Bits> in(4 * threads), out(4 * threads, poison);
    std::vector<Bits> values(4);
    for (unsigned t = 0; t < threads; ++t) {
        for (unsigned i = 0; i < s.source_count; ++i) {
            values[i] = some_value(s.sources[i], random);
            if (s.source_letters[i] == 'i') values[i] = immediate;
        }
        relate(c, values, random);
        for (unsigned i = 0; i < s.source_count; ++i) {
            // The bits above a narrow value in its register must not matter.
            const unsigned given = c.form.source_bytes ? c.form.source_bytes : register_bytes(s.sources[i]);
            const bool narrow = s.sources[i] != Type::pred && 8 * given > reference::bits_in(s.sources[i]);
            in[4 * t + i] = narrow ? values[i] | random() << reference::bits_in(s.sources[i]) : values[i];
        }
    }
    std::optional<emulated::machine::Fault> fault;
    try {
        testing::Device device(kernel_of(c, immediate));
        if (lacks_a_handler(device)) {
            tally.fault(c.opcode, c.spelling, "is accepted, but nothing runs it");
            return;
        }
        fault = device.launch("k", {threads / block}, {block}, device.array(in), device.array(out));
    } catch (const std::runtime_error& refusal) {
        tally.refused(c.spelling, refusal.what());
        return;
    }
    if (fault) {
        tally.fault(c.opcode, c.spelling, fault->message);
        return;
    }
    for (unsigned t = 0; t < threads; ++t) {
        for (unsigned i = 0; i < s.source_count; ++i) {
            values[i] = in[4 * t + i];
            if (s.sources[i] != Type::pred)
                values[i] &= reference::mask_of(s.sources[i]);
            else if (c.form.negated)
                values[i] ^= 1;
        }
        Answers answers;
        c.family->evaluate(Call{c.opcode, values.data()}, answers);
        for (unsigned i = 0; i < answers.count; ++i) {
            if (s.results[i] == Type::pred && i > 0 && c.family->name == "setp" && !c.form.pair) continue;
            const unsigned bytes = s.results[i] == Type::pred ? 4
                                   : c.form.result_bytes      ? c.form.result_bytes
                                                              : register_bytes(s.results[i]);
            Answer expected = answers.at[i];
            Bits got = out[4 * t + i];
            const Bits above = bytes == 8 ? 0 : ~Bits{0} << (8 * bytes);
            if ((got ^ poison) & above) {
                tally.fault(c.opcode, c.spelling, "wrote beyond its result");
                continue;
            }
            got &= ~above;
            if (8 * bytes != reference::bits_in(expected.type) && expected.type != Type::pred) {
                expected.bits = in_register(expected, bytes);
                expected.type = bytes == 2 ? Type::b16 : bytes == 4 ? Type::b32 : Type::b64;
            }
            tally.compare(c.opcode, c.spelling, expected, got, [&] { return words_of(s, values); });
        }
    }
}

// True for a cvt.sat between integers that never clamps, which PTX does not allow.
bool saturates_nothing(const Opcode& opcode) {
    if (opcode.row->name != "cvt" || !opcode.flags.has(Flag::sat)) return false;
    if (!reference::is_integer(opcode.type) || !reference::is_integer(opcode.second)) return false;
    return reference::least_of(opcode.type) <= reference::least_of(opcode.second) &&
           reference::greatest_of(opcode.type) >= reference::greatest_of(opcode.second);
}

std::vector<Form> forms_of(const Opcode& opcode, const Signature& signature) {
    const bool packed = reference::is_packed(opcode.type);
    if (opcode.row->name == "setp" && packed) {
        if (signature.source_count == 2) return {{.pair = true}};
        return {{.pair = true}, {.pair = true, .negated = true}};
    }
    if (opcode.row->name == "setp") {
        if (signature.source_count == 2) return {{}, {.pair = true}};
        return {{}, {.pair = true}, {.negated = true}, {.pair = true, .negated = true}};
    }
    std::vector<Form> forms{{}};
    if (opcode.row->name == "cvt" && opcode.row->operation == emulated::program::Operation::cvt &&
        signature.source_count == 1) {
        const unsigned to = register_bytes(opcode.type), from = register_bytes(opcode.second);
        for (const unsigned wide : {4u, 8u}) {
            if (reference::is_integer(opcode.type) && to < wide) forms.push_back({.result_bytes = wide});
            if (reference::is_integer(opcode.second) && from < wide) forms.push_back({.source_bytes = wide});
        }
    }
    return forms;
}

}  // namespace

void scalar_vectors(Tally& tally) {
    Random random(20240607);
    for (const reference::Syntax& syntax : reference::scalar_syntax()) {
        for (const std::string& spelling : reference::spellings_of(syntax)) {
            const auto opcode = known(spelling);
            if (!opcode) {
                tally.refused(spelling, "not in the table");
                continue;
            }
            if (saturates_nothing(*opcode)) continue;
            const Family* family = reference::family_of(*opcode);
            if (!family) throw std::logic_error("no reference for " + spelling);
            const Signature signature = signature_of(*opcode, *family);
            for (const Form& form : forms_of(*opcode, signature)) {
                for (unsigned round = 0; round < rounds; ++round) {
                    run(tally, {spelling, *opcode, family, signature, form}, random);
                }
            }
        }
    }
}

}  // namespace vectors
