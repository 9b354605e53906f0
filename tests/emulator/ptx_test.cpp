// The lexer and the parser on hand-written PTX.
#include <cstring>
#include <string>

#include <doctest/doctest.h>

#include "ptx/lexer.hpp"
#include "ptx/module.hpp"
#include "ptx_device.hpp"

using namespace emulated::ptx;

namespace {

SyntaxError error_of(const std::string& text) {
    try {
        parse(text);
    } catch (const SyntaxError& error) {
        return error;
    }
    FAIL("no error");
    throw;
}

template <class T>
T initial(const Variable& variable, std::size_t index) {
    T value;
    REQUIRE(variable.initial.size() >= (index + 1) * sizeof value);
    std::memcpy(&value, variable.initial.data() + index * sizeof value, sizeof value);
    return value;
}

}  // namespace

TEST_CASE("an opcode is one token and directives are split at their dots") {
    const auto tokens =
        tokenize("ld.global.v2.f32 %tid.x { .reg.b16 hu, lo; // x\n /* y */ 0x1F 0f3F800000 -5U");
    const char* expected[] = {
        "ld.global.v2.f32", "%tid.x", "{",  ".reg",       ".b16", "hu", ",", "lo", ";", "0x1F",
        "0f3F800000",       "-",      "5U", "end of file"};
    REQUIRE(tokens.size() == std::size(expected));
    for (std::size_t i = 0; i < tokens.size(); ++i) CHECK(tokens[i].text == expected[i]);
    CHECK(tokens[9].bits == 31);
    CHECK(tokens[10].bits == 0x3f800000);
    CHECK(tokens[9].line == 2);
}

TEST_CASE("a register of an inner block shadows the outer one") {
    const std::string text = testing::sm_80_prologue + R"(.entry k() {
        .reg .b32 %r<3>; .reg .f32 x;
        { .reg .b64 x; mov.b64 x, 1; }
        mov.f32 x, 0f00000000; ret; })";
    const Module module = parse(text);
    const Function& k = module.functions.at(0);
    REQUIRE(k.body.size() == 3);
    const auto inner = k.body[0].operands[0].index, outer = k.body[1].operands[0].index;
    CHECK(inner != outer);
    CHECK(k.registers[static_cast<std::size_t>(inner)] == Type::b64);
    CHECK(k.registers[static_cast<std::size_t>(outer)] == Type::f32);
}

TEST_CASE("a label belongs to its block and may be named before it stands") {
    const std::string text = testing::sm_80_prologue + R"(.entry k() {
        .reg .pred %p<2>;
        { bra done; done: }
        { bra done; done: }
        @!%p1 bra end;
        end: ret; })";
    const Module module = parse(text);
    const Function& k = module.functions.at(0);
    const auto target = [&](std::size_t i) {
        REQUIRE(k.body[i].operands[0].kind == Operand::Kind::label);
        return k.labels[static_cast<std::size_t>(k.body[i].operands[0].index)].at;
    };
    CHECK(target(0) == 1);
    CHECK(target(1) == 2);
    CHECK(target(2) == 3);
    CHECK(k.body[2].guard_negated);
}

TEST_CASE("initialisers may be short, negative, floating, symbols and sums") {
    const std::string text = testing::sm_80_prologue + R"(
        .global .align 4 .b32 a[8] = {1, -2, 0x10};
        .const .f32 f[2] = {0f3F800000, -1.5};
        .global .f64 d = 0d4000000000000000;
        .global .u64 p[3] = {generic(a)+8, a, d+-4};)";
    const Module module = parse(text);
    REQUIRE(module.variables.size() == 4);
    CHECK(module.variables[0].bytes == 32);
    CHECK(initial<std::int32_t>(module.variables[0], 1) == -2);
    CHECK(initial<float>(module.variables[1], 0) == 1.0f);
    CHECK(initial<float>(module.variables[1], 1) == -1.5f);
    CHECK(initial<double>(module.variables[2], 0) == 2.0);
    const Variable& p = module.variables[3];
    REQUIRE(p.references.size() == 3);
    CHECK(p.references[0].symbol == "a");
    CHECK(p.references[0].addend == 8);
    CHECK(p.references[2].offset == 16);
    CHECK(p.references[2].addend == -4);
}

TEST_CASE("directives of entries, debug sections and unknown pragmas are read over") {
    const std::string text = testing::sm_80_prologue + R"(
        .visible .entry k(.param .u64 .ptr .global .align 16 k_param_0, .param .align 8 .b8 k_param_1[24])
        .maxntid 128, 2, 1
        .minnctapersm 2
        .maxnreg 64
        { .pragma "used_bytes_mask 15"; .loc 1 7 3, function_name $L__info + 4, inlined_at 1 9 2
          ret; }
        .weak .entry w() { ret; }
        .file 1 "a.cu"
        .section .debug_str { $L__info: .b8 1,2,3 })";
    const Module module = parse(text);
    REQUIRE(module.functions.size() == 2);
    const Function& k = module.functions[0];
    CHECK(k.max_threads == 256);
    REQUIRE(k.parameters.size() == 2);
    CHECK(k.variables[0].bytes == 8);
    CHECK(k.variables[0].alignment == 8);
    CHECK(k.variables[1].bytes == 24);
    CHECK(k.body[0].source_line == 7);
    CHECK(module.files[0].name == "a.cu");
}

TEST_CASE("inlined code knows the line of the function that is not inlined") {
    const Module module = parse(testing::sm_80_prologue + R"(.file 1 "k.cu"
        .entry k() { .reg .b32 %r<9>;
          .loc 1 30 1
          mov.u32 %r0, 0;
          .loc 1 20 1, function_name $L, inlined_at 1 30 5
          mov.u32 %r1, 1;
          .loc 1 10 1, function_name $L + 4, inlined_at 1 20 1
          mov.u32 %r2, 2;
          .loc 1 31 1
          ret; }
        .entry next() { .reg .b32 %r<9>;
          .loc 1 10 1, function_name $L + 4, inlined_at 1 20 1
          mov.u32 %r2, 2; ret; })");
    const auto callers = [&](std::size_t function) {
        std::vector<std::uint32_t> lines;
        for (const auto& each : module.functions.at(function).body) lines.push_back(each.caller_line);
        return lines;
    };
    CHECK(callers(0) == std::vector<std::uint32_t>{0, 30, 30, 0});
    CHECK(callers(1)[0] == 20);  // another function's inlined code does not count
}

TEST_CASE("syntax errors name their line and what to do") {
    CHECK(std::string(error_of("hello").what()).find("is this PTX text?") != std::string::npos);
    const SyntaxError missing =
        error_of(testing::sm_80_prologue + ".entry k() {\n .reg .b32 %r<2>;\n mov.u32 %r1, 3\n ret;\n}");
    CHECK(missing.line == 7);
    CHECK(std::string(missing.what()).find("semicolon") != std::string::npos);
    CHECK(std::string(error_of(testing::sm_80_prologue + ".entry k() { ret;").what()).find("never closed") !=
          std::string::npos);
    CHECK(error_of(testing::sm_80_prologue + "/* never").line == 4);
    CHECK(std::string(error_of(".version 8.0\n.target sm_80\n.address_size 32").what()).find("64") !=
          std::string::npos);
    for (const char* version : {"7", "0d3FF0000000000000", "x.y"}) {
        CHECK(std::string(error_of(".version " + std::string(version)).what()).find("MAJOR.MINOR") !=
              std::string::npos);
    }
    CHECK_THROWS_AS(parse(testing::sm_80_prologue + ".global .b32 x = 99999999999999999999;"), SyntaxError);
    CHECK_THROWS_AS(parse(testing::sm_80_prologue + ".entry k() { @%p1 ret; }"), SyntaxError);
}
