// Makes random PTX: straight-line code of every single-thread instruction, memory of a single thread, branches that
// diverge, nested loops whose trip counts differ by lane, guarded instructions, calls, threads that end early.
#include <span>
#include <stdexcept>

#include "random_programs.hpp"
#include "vectors.hpp"

namespace random_programs {
namespace {

using emulated::program::Flag;
using emulated::program::Opcode;
using reference::Bits;
using reference::Family;
using reference::Signature;
using vectors::Random;
using vectors::Type;

constexpr unsigned registers = 8, predicates = 4, deepest_if = 3, deepest_loop = 2;

std::string number(std::uint64_t value) { return std::to_string(value); }

class Generator {
  public:
    Generator(const Opcodes& opcodes, std::uint64_t seed)
        : opcodes_(opcodes), random_(seed * 0x9e37'79b9'7f4a'7c15ull + 1) {}

    Program run() {
        Program program;
        static constexpr std::uint32_t blocks[] = {1, 5, 31, 32, 33, 40, 48, 63, 64, 70, 96, 128};
        program.block = blocks[random_() % std::size(blocks)];
        program.grid = chance(4) ? 2 : 1;
        functions_ = static_cast<unsigned>(random_() % 3);
        std::string functions;
        for (unsigned f = 0; f < functions_; ++f) functions += function(f);
        callable_ = functions_;
        program.text = vectors::header + functions + kernel();
        return program;
    }

  private:
    bool chance(unsigned one_in) { return random_() % one_in == 0; }
    unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }
    void line(const std::string& text) { body_ += text + ";\n"; }
    std::string label() { return "L" + number(labels_++); }

    static std::string prefix(unsigned bytes) { return bytes == 2 ? "%h" : bytes == 4 ? "%r" : "%d"; }
    std::string any_register(unsigned bytes) { return prefix(bytes) + number(below(registers)); }
    std::string any_predicate() { return "%p" + number(below(predicates)); }
    std::string guard() {
        return chance(5) ? std::string(chance(2) ? "@" : "@!") + any_predicate() + " " : "";
    }

    // --- one instruction of one thread

    std::string source(Type type, char letter) {
        if (letter == 'i') return number(below(256));
        if (type == Type::pred) return any_predicate();
        const unsigned bytes = vectors::register_bytes(type);
        const bool is_whole = emulated::ptx::is_integer(type) || emulated::ptx::is_bits(type);
        if (chance(5) && (is_whole || type == Type::f32 || type == Type::f64)) {
            const Bits value = vectors::some_value(type, random_);
            if (is_whole) return number(value);
            char text[40];
            std::snprintf(text, sizeof text, type == Type::f32 ? "0f%08llX" : "0d%016llX",
                          static_cast<unsigned long long>(value));
            return text;
        }
        return any_register(bytes);
    }

    void scalar() {
        const std::string& spelling = opcodes_.any(random_);
        const Opcode opcode = *vectors::known(spelling);
        const Family* family = reference::family_of(opcode);
        const Signature signature = signature_of(opcode, *family);
        std::vector<std::string> sources;
        for (unsigned i = 0; i < signature.source_count; ++i) {
            sources.push_back(source(signature.sources[i], signature.source_letters[i]));
        }
        if (family->name == "bfe" || family->name == "bfi") {  // constant positions and lengths are below 256
            for (std::string& each : std::span(sources).last(2)) {
                if (each.front() != '%') each = number(below(256));
            }
        }
        if (opcode.row->name == "setp" && sources.size() == 3 && chance(2)) sources[2] = "!" + sources[2];
        // Excludes what PTX leaves open: division by zero, and positions that fns does not have.
        const bool divides = family->name == "div:integer" || family->name == "rem";
        if (divides || family->name == "fns") {
            const std::string type(vectors::register_type(vectors::register_bytes(signature.sources[1])));
            sources[1] = any_register(vectors::register_bytes(signature.sources[1]));
            line((divides ? "or" : "and") + type + " " + sources[1] + ", " + sources[1] +
                 (divides ? ", 1" : ", 31"));
        }
        std::string result;
        const Type to = signature.results[0];
        if (to == Type::pred) {
            const unsigned first = below(predicates);
            result = "%p" + number(first);
            if (opcode.row->name == "setp" && chance(3)) result += "|%p" + number((first + 1) % predicates);
        } else {
            unsigned bytes = vectors::register_bytes(to);
            if (opcode.row->name == "cvt" && reference::is_integer(to) && chance(4))
                bytes = bytes == 2 ? 4 : 8;
            result = any_register(bytes);
        }
        std::string text = guard() + spelling + " " + result;
        for (const std::string& each : sources) text += ", " + each;
        line(text);
        if (emulated::ptx::is_float(to)) one_nan(to, result);
    }

    // PTX leaves open which NaN a result is; this replaces it by a fixed one.
    void one_nan(Type type, const std::string& where) {
        const Type element = reference::element_of(type);
        const std::string name = element == Type::f16 ? "f16" : element == Type::bf16 ? "bf16" : "";
        if (type == Type::f32) {
            line("testp.notanumber.f32 %nan, " + where);
            line("selp.b32 " + where + ", 0x7fffffff, " + where + ", %nan");
        } else if (type == Type::f64) {
            line("testp.notanumber.f64 %nan, " + where);
            line("selp.b64 " + where + ", 0x7fffffffffffffff, " + where + ", %nan");
        } else if (type == element) {
            line("setp.nan." + name + " %nan, " + where + ", " + where);
            line("selp.b16 " + where + ", 0x7fff, " + where + ", %nan");
        } else {
            line("mov.b32 {%low, %high}, " + where);
            one_nan(element, "%low");
            one_nan(element, "%high");
            line("mov.b32 " + where + ", {%low, %high}");
        }
    }

    void carry_chain() {
        const unsigned bytes = chance(2) ? 4 : 8;
        const std::string type = bytes == 4 ? "u32" : "s64";
        const auto operands = [&](unsigned count) {
            std::string text = " " + any_register(bytes);
            for (unsigned i = 0; i < count; ++i) text += ", " + any_register(bytes);
            return text;
        };
        const std::string with = guard();  // the whole chain or nothing
        switch (below(3)) {
            case 0:
                line(with + "add.cc." + type + operands(2));
                line(with + "addc.cc." + type + operands(2));
                line(with + "addc." + type + operands(2));
                break;
            case 1:
                line(with + "sub.cc." + type + operands(2));
                line(with + "subc.cc." + type + operands(2));
                line(with + "subc." + type + operands(2));
                break;
            default:
                line(with + "mad.lo.cc." + type + operands(3));
                line(with + "madc.hi.cc." + type + operands(3));
                line(with + "madc.lo." + type + operands(3));
                break;
        }
    }

    void packing() {
        switch (below(6)) {
            case 0:
                return line("mov.b32 " + any_register(4) + ", {" + any_register(2) + ", " + any_register(2) +
                            "}");
            case 1:
                return line("mov.b64 " + any_register(8) + ", {" + any_register(4) + ", " + any_register(4) +
                            "}");
            case 2:
                return line("mov.b64 " + any_register(8) + ", {" + any_register(2) + ", " + any_register(2) +
                            ", " + any_register(2) + ", " + any_register(2) + "}");
            case 3:
                return line(guard() + "mov.b32 {%h0, %h" + number(1 + below(registers - 1)) + "}, " +
                            any_register(4));
            case 4:
                return line(guard() + "mov.b64 {%r" + number(1 + below(registers - 1)) + ", %r0}, " +
                            any_register(8));
            default: {
                static const char* const specials[] = {"%tid.x", "%ntid.x", "%ctaid.x", "%nctaid.x",
                                                       "%laneid"};
                return line(guard() + "mov.u32 " + any_register(4) + ", " + specials[below(5)]);
            }
        }
    }

    // --- memory of a single thread: 64 bytes of global and of local memory

    void memory() {
        static const char* const types[] = {"b8",  "u8",  "s8",  "b16", "u16", "s16", "b32",
                                            "u32", "s32", "f32", "b64", "u64", "s64", "f64"};
        const std::string name = types[below(std::size(types))];
        const Type type = *emulated::ptx::type_named(name);
        const unsigned bytes = emulated::ptx::bytes_of(type);
        const unsigned lanes = bytes == 8 ? 1 + below(2) : 1u << below(3);
        const bool local = chance(2);
        unsigned held = vectors::register_bytes(type);
        if (!emulated::ptx::is_float(type)) {
            while (held < 8 && chance(3)) held *= 2;
        }
        const unsigned size = bytes * lanes;
        std::string address = local ? "%local" : "%slot";
        if (chance(3)) {  // an index that differs by thread
            line("and.b32 %index, " + any_register(4) + ", " + number(64 / size - 1));
            line("mul.wide.u32 %at, %index, " + number(size));
            line("add.u64 %at, %at, " + address);
            address = "[%at]";
        } else {
            address = "[" + address + "+" + number(below(64 / size) * size) + "]";
        }
        // The destinations of a load differ.
        const unsigned first = below(registers);
        std::string list;
        for (unsigned k = 0; k < lanes; ++k) {
            list += (k ? ", " : "") + prefix(held) + number((first + k) % registers);
        }
        if (lanes > 1) list = "{" + list + "}";
        const std::string suffix =
            std::string(local ? ".local" : ".global") + (lanes == 1 ? "" : ".v" + number(lanes)) + "." + name;
        line(guard() + (chance(2) ? "ld" + suffix + " " + list + ", " + address
                                  : "st" + suffix + " " + address + ", " + list));
    }

    // --- control

    void condition() {
        static const char* const orders[] = {"eq", "ne", "lt", "le", "gt", "ge"};
        const std::string order = orders[below(6)];
        if (chance(3)) {  // by lane
            line("and.b32 %index, %tid, " + number(1 + below(31)));
            return line("setp." + order + ".u32 %branch, %index, " + number(below(32)));
        }
        if (chance(3)) return line("mov.pred %branch, " + any_predicate());
        line("setp." + order + ".s32 %branch, " + any_register(4) + ", " + any_register(4));
    }

    void branch(unsigned ifs, unsigned loops) {
        condition();
        const std::string other = label(), end = label();
        line(std::string(chance(2) ? "@" : "@!") + "%branch bra " + other);
        block(1 + below(4), ifs + 1, loops);
        if (chance(2)) {
            line("bra " + end);
            body_ += other + ":\n";
            block(1 + below(4), ifs + 1, loops);
            body_ += end + ":\n";
        } else {
            body_ += other + ":\n";
        }
    }

    void loop(unsigned ifs, unsigned loops) {
        const std::string counter = "%count" + number(loops), limit = "%limit" + number(loops);
        const std::string again = label(), end = label();
        line("mov.u32 " + counter + ", 0");
        if (chance(4))
            line("mov.u32 " + limit + ", " + number(below(6)));
        else
            line("and.b32 " + limit + ", " + (chance(2) ? "%tid" : any_register(4)) + ", " +
                 (loops ? "3" : "7"));
        const bool tests_first = chance(2);
        body_ += again + ":\n";
        if (tests_first) {
            line("setp.ge.u32 %branch, " + counter + ", " + limit);
            line("@%branch bra " + end);
        }
        block(1 + below(4), ifs, loops + 1);
        if (chance(4)) {
            condition();
            line("@%branch bra " + end);
        }
        line("add.u32 " + counter + ", " + counter + ", 1");
        if (tests_first) {
            line("bra " + again);
        } else {
            line("setp.lt.u32 %branch, " + counter + ", " + limit);
            line("@%branch bra " + again);
        }
        body_ += end + ":\n";
    }

    void call() {
        const unsigned f = below(callable_);
        body_ += "{\n.param .b32 a0;\n.param .b64 a1;\n.param .b32 q0;\n";
        line("st.param.b32 [a0], " + any_register(4));
        line("st.param.b64 [a1], " + any_register(8));
        line("call (q0), f" + number(f) + ", (a0, a1)");
        line("ld.param.b32 " + any_register(4) + ", [q0]");
        body_ += "}\n";
    }

    void block(unsigned statements, unsigned ifs, unsigned loops) {
        for (unsigned i = 0; i < statements; ++i) {
            const unsigned what = below(20);
            if (what == 0 && ifs < deepest_if)
                branch(ifs, loops);
            else if (what == 1 && ifs < deepest_if)
                branch(ifs, loops);
            else if (what == 2 && loops < deepest_loop)
                loop(ifs, loops);
            else if (what == 3 && callable_ > 0)
                call();
            else if (what <= 6 && in_kernel_)
                memory();
            else if (what == 7)
                packing();
            else if (what == 8)
                carry_chain();
            else if (what == 9 && chance(6))
                line("@" + any_predicate() + (in_kernel_ && chance(2) ? " exit" : " ret"));
            else
                scalar();
        }
    }

    std::string declarations() const {
        std::string text =
            ".reg .b16 %h<8>;\n.reg .b32 %r<8>;\n.reg .b64 %d<8>;\n.reg .pred %p<4>;\n"
            ".reg .b16 %low, %high;\n.reg .b32 %tid, %index, %n;\n.reg .b64 %at, %slot, %local, %out;\n"
            ".reg .pred %nan, %branch;\n";
        for (unsigned i = 0; i < deepest_loop; ++i)
            text += ".reg .b32 %count" + number(i) + ", %limit" + number(i) + ";\n";
        return text;
    }

    std::string function(unsigned f) {
        body_.clear();
        in_kernel_ = false;
        line("ld.param.b32 %r0, [p0]");
        line("ld.param.b64 %d0, [p1]");
        line("mov.u32 %tid, %tid.x");
        for (unsigned i = 1; i < registers; ++i) {
            line("add.u32 %r" + number(i) + ", %r" + number(i - 1) + ", " + number(below(1000)));
            line("mad.lo.u64 %d" + number(i) + ", %d" + number(i - 1) + ", 3, " + number(below(1000)));
        }
        for (unsigned i = 0; i < registers; ++i) line("cvt.u16.u64 %h" + number(i) + ", %d" + number(i));
        for (unsigned i = 0; i < predicates; ++i)
            line("setp.gt.s32 %p" + number(i) + ", %r" + number(i) + ", 0");
        line("st.param.b32 [q], %r3");
        for (unsigned i = 0, count = 2 + below(6); i < count; ++i) {
            if (i > 0 && chance(4)) {
                branch(deepest_if - 1, deepest_loop);
            } else {
                scalar();
            }
        }
        line("st.param.b32 [q], %r" + number(below(registers)));
        return ".func (.param .b32 q) f" + number(f) + "(.param .b32 p0, .param .b64 p1) {\n" +
               declarations() + body_ + "ret;\n}\n";
    }

    std::string kernel() {
        body_.clear();
        in_kernel_ = true;
        body_ +=
            "mov.u32 %tid, %tid.x;\nmov.u32 %index, %ntid.x;\nmov.u32 %n, %ctaid.x;\n"
            "mad.lo.u32 %tid, %index, %n, %tid;\nld.param.u64 %at, [in];\nld.param.u64 %slot, [scratch];\n"
            "ld.param.u64 %out, [out];\nmov.u64 %local, buffer;\n";
        const auto own = [&](const char* base, unsigned words) {
            line("mul.wide.u32 %d0, %tid, " + number(8 * words));
            line(std::string("add.u64 ") + base + ", " + base + ", %d0");
        };
        own("%at", input_words);
        own("%slot", scratch_words);
        own("%out", output_words);
        for (unsigned i = 0; i < scratch_words; ++i)
            line("st.local.u64 [%local+" + number(8 * i) + "], " + number(i));
        for (unsigned i = 0; i < registers; ++i) {
            line("ld.global.b16 %h" + number(i) + ", [%at+" + number(8 * i) + "]");
            line("ld.global.b32 %r" + number(i) + ", [%at+" + number(8 * (registers + i)) + "]");
            line("ld.global.b64 %d" + number(i) + ", [%at+" + number(8 * (2 * registers + i)) + "]");
        }
        for (unsigned i = 0; i < predicates; ++i) {
            line("setp.lt.s32 %p" + number(i) + ", %r" + number(i) + ", %r" + number(i + 1));
        }
        block(12 + below(24), 0, 0);
        for (unsigned i = 0; i < registers; ++i) {
            line("st.global.b16 [%out+" + number(8 * i) + "], %h" + number(i));
            line("st.global.b32 [%out+" + number(8 * (registers + i)) + "], %r" + number(i));
            line("st.global.b64 [%out+" + number(8 * (2 * registers + i)) + "], %d" + number(i));
        }
        for (unsigned i = 0; i < predicates; ++i) {
            line("selp.b32 %n, 1, 0, %p" + number(i));
            line("st.global.b32 [%out+" + number(8 * 3 * registers + 4 * i) + "], %n");
        }
        return ".visible .entry k(.param .u64 in, .param .u64 scratch, .param .u64 out) {\n"
               ".local .align 16 .b8 buffer[64];\n" +
               declarations() + body_ + "ret;\n}\n";
    }

    const Opcodes& opcodes_;
    Random random_;
    std::string body_;
    unsigned labels_ = 0, functions_ = 0, callable_ = 0;
    bool in_kernel_ = false;
};
static_assert(input_words == 3 * registers && output_words == 3 * registers + predicates / 2);

}  // namespace

Program generate(const Opcodes& opcodes, std::uint64_t seed) { return Generator(opcodes, seed).run(); }

}  // namespace random_programs
