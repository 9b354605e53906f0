// Loads a PTX text of a shape and a size: decoding.py counts the instructions that this takes.
//   emulator_decoding SHAPE COUNT
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

#include "program/loaded_module.hpp"

namespace {

const std::string header = ".version 8.0\n.target sm_80\n.address_size 64\n";
const std::string entry =
    ".entry k(.param .u64 p, .param .u32 n) {\n"
    ".reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<9>;\nld.param.u64 %d1, [p]; ld.param.u32 %r1, [n];\n";

std::string each(unsigned count, const std::function<std::string(const std::string&)>& line) {
    std::string text;
    for (unsigned i = 0; i < count; ++i) text += line(std::to_string(i));
    return text;
}

std::string list(unsigned count, const std::string& prefix) {
    std::string text = each(count, [&](const std::string& i) { return ", " + prefix + i; });
    return text.substr(2);
}

// Consecutive comparisons, which is what compilers make of a sparse switch. In each case, a value is live across the
// branch.
std::string compare(unsigned count) {
    return header + entry +
           each(count,
                [](const std::string& i) {
                    return "{ .reg .b32 %v, %w; add.u32 %v, %r1, " + i + "; setp.ne.u32 %p1, %r1, " + i +
                           "; @%p1 bra NEXT; mul.lo.u32 %w, %v, %v; add.u32 %r2, %r2, %w;\n"
                           "NEXT: xor.b32 %r2, %r2, %v; }\n";
                }) +
           "st.global.u32 [%d1], %r2; ret; }";
}

std::string table(unsigned count) {
    return header + entry + "LIST: .branchtargets " + list(count, "L") + ";\nbrx.idx %r1, LIST;\n" +
           each(count,
                [](const std::string& i) { return "L" + i + ": mov.u32 %r2, " + i + "; bra DONE;\n"; }) +
           "DONE: st.global.u32 [%d1], %r2; ret; }";
}

// Functions that call each other through pointers: all of them can be re-entered.
std::string calls(unsigned count) {
    const std::string call =
        "mov.u64 %d2, pointers; ld.global.u64 %d4, [%d2];\n"
        "{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r1;\n"
        "proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
        "call (r), %d4, (a), proto; ld.param.b32 %r2, [r]; }\n";
    const auto function = [&](const std::string& i) {
        return ".func (.param .b32 result) f" + i +
               "(.param .b32 given) { .reg .b32 %r<4>; .reg .b64 %d<5>;\n" + "ld.param.b32 %r1, [given];\n" +
               call + "st.param.b32 [result], %r2; ret; }\n";
    };
    return header + each(count, function) + ".global .u64 pointers[] = {" + list(count, "f") + "};\n" +
           entry + call + "st.global.u32 [%d1], %r2; ret; }";
}

// Loads from many different pointers, in one basic block.
std::string loads(unsigned count) {
    return header + entry +
           each(count,
                [](const std::string& i) {
                    return "{ .reg .b64 %a; .reg .b32 %v; mad.wide.u32 %a, %r1, " + i +
                           ", %d1; ld.global.u32 %v, [%a]; add.u32 %r2, %r2, %v; }\n";
                }) +
           "st.global.u32 [%d1], %r2; ret; }";
}

const std::map<std::string, std::string (*)(unsigned)> shapes = {
    {"compare", compare}, {"table", table}, {"calls", calls}, {"loads", loads}};

}  // namespace

int main(int count, char** arguments) {
    if (count != 3 || !shapes.contains(arguments[1])) {
        for (const auto& [name, text] : shapes) std::puts(name.c_str());
        return 2;
    }
    const std::string text = shapes.at(arguments[1])(static_cast<unsigned>(std::atoi(arguments[2])));
    const auto loaded = emulated::program::load(text);
    if (const auto* error = std::get_if<emulated::program::LoadError>(&loaded)) {
        std::printf("line %u: %s\n", error->line, error->message.c_str());
        return 1;
    }
    const std::string& refusal = std::get<0>(loaded)->kernels.at(0).refusal;
    if (!refusal.empty()) std::puts(refusal.c_str());
    return refusal.empty() ? 0 : 1;
}
