// Tests which programs load and which are refused, and single operations in hand-written PTX.
#include <cstdint>
#include <string>

#include <doctest/doctest.h>

#include "machine/registry.hpp"
#include "program/code.hpp"
#include "program/lowering.hpp"
#include "program/table/operations.hpp"
#include "ptx_device.hpp"

using namespace emulated::program;
using testing::Device;

namespace {

std::shared_ptr<const Module> loaded(const std::string& text) {
    const auto result = load(testing::sm_80_prologue + text);
    REQUIRE(std::holds_alternative<std::shared_ptr<const Module>>(result));
    return std::get<0>(result);
}

std::string refusal_of(const std::string& body) {
    return loaded(
               ".entry k(.param .u64 p) {\n.reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<9>; "
               ".reg .f32 %f<9>; .reg .b16 %h<9>;\n" +
               body + "\nret; }")
        ->kernels.at(0)
        .refusal;
}

std::string name_of(Type type) {
    return std::string(emulated::ptx::type_names[static_cast<unsigned>(type)].name);
}

// Runs `body` on one warp; it must leave a result of T in a register named `result`.
template <class T>
std::vector<T> run(const std::string& body) {
    const std::string width = std::to_string(8 * sizeof(T));
    Device device(testing::sm_80_prologue +
                  ".entry k(.param .u64 p) {\n.reg .b32 %r<20>; .reg .b64 %d<20>; .reg .pred %p<9>;.reg .f32 "
                  "%f<20>; .reg .f64 %fd<9>; .reg .b16 %h<20>; .reg .b" +
                  width +
                  " result;\n"
                  ".reg .b64 at; .reg .b32 lane; ld.param.u64 at, [p]; mov.u32 lane, %tid.x;mad.wide.u32 at, "
                  "lane, " +
                  std::to_string(sizeof(T)) + ", at;\n" + body + "\nst.global.b" + width +
                  " [at], result; ret; }");
    std::vector<T> out(32);
    const auto fault = device.launch("k", {1}, {32}, device.array(out));
    if (fault) FAIL(fault->message);
    return out;
}

}  // namespace

TEST_CASE("an operation that is not in the table refuses its kernel and no other") {
    const auto module = loaded(R"(
        .entry good() { ret; }
        .entry bad() { .reg .f32 %f<3>; .reg .b32 %r<3>;
            redux.sync.add.f32 %f1, %f2, %r1; ret; })");
    CHECK(module->find_kernel("good")->refusal.empty());
    CHECK(module->find_kernel("bad")->refusal == "redux.sync.add.f32 is not supported\n  PTX line 7");
    CHECK(module->find_kernel("bad")->code == nullptr);
}

TEST_CASE("a refusal names the function and the lines of C++ before the line of PTX") {
    const auto module = loaded(R"(.file 1 "sums.cuh"
        .file 2 "k.cu"
        .func _Z5totalf(.param .b32 x) { .reg .f32 %f<3>; .reg .b32 %r<3>;
            .loc 1 7 3, function_name $L, inlined_at 2 20 5
            redux.sync.add.f32 %f1, %f2, %r1; ret; }
        .entry k() { { .param .b32 x; call _Z5totalf, (x); } ret; })");
    CHECK(module->find_kernel("k")->refusal ==
          "redux.sync.add.f32 is not supported\n  in function 'total(float)'\n  at line 7 of sums.cuh\n"
          "  called from line 20 of k.cu\n  PTX line 8");
}

TEST_CASE("a refusal names everything that the kernel and its functions lack, each once") {
    const auto module = loaded(R"(.file 1 "sums.cu"
        .func _Z5totalf(.param .b32 x) { .reg .f32 %f<3>; .reg .b32 %r<3>;
            .loc 1 7 3
            redux.sync.add.f32 %f1, %f2, %r1; ret; }
        .entry k() { .reg .f32 %f<3>; .reg .b32 %r<3>;
            .loc 1 20 3
            frobnicate.u32 %r1, %r2;
            add.u8 %r1, %r2, %r2;
            .loc 1 21 3
            frobnicate.u32 %r2, %r1;
            { .param .b32 x; call _Z5totalf, (x); } ret; })");
    CHECK(module->find_kernel("k")->refusal ==
          "3 of its instructions cannot run\n"
          "frobnicate.u32 is not supported\n  at line 20 of sums.cu\n  PTX line 10, and 1 more place\n"
          "add.u8 is not supported\n  at line 20 of sums.cu\n  PTX line 11\n"
          "redux.sync.add.f32 is not supported\n  in function 'total(float)'\n  at line 7 of sums.cu\n"
          "  PTX line 7");
}

TEST_CASE("no modifier is ignored") {
    for (const char* text : {"add.rm.s32 %r1, %r2, %r3;",
                             "mul.s32 %r1, %r2, %r3;",
                             "mul.lo.hi.s32 %r1, %r2, %r3;",
                             "setp.lt.b32 %p1, %r1, %r2;",
                             "ld.global.L2::evict_last.u32 %r1, [%d1];",
                             "ld.global.L2::cache_hint.u32 %r1, [%d1];",
                             "add.s32 %r1, %r2.b0, %r3;",
                             "add.s32 %r1, %r2, -%r3;",
                             "vadd.s32.u32.s32 %r1, %r2.h2, %r3;",
                             "vadd.s32.u32.s32 %r1, %r2, -%r3;",
                             "vadd2.s32.u32.s32.sat.add %r1, %r2, %r3, %r1;",
                             "cvt.s32.f32 %r1, %f1;",
                             "cvt.rn.rni.f32.f32 %f1, %f2;",
                             "tcgen05.fence::before_thread_sync;",
                             "bar.red.popc.s32 %r1, 0, %p1;",
                             "min.abs.f32 %f1, %f2, %f3;",
                             "st.const.u32 [%d1], %r1;",
                             "fma.f32.f64 %f1, %f2, %f3, %f4;",
                             "tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%d1, %d2, {%f5,%f6}];",
                             "tex.base.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%d1, {%f5,%f6}], %f1;",
                             "tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%d1, {%f5,%f6}], {%r1,%r2};",
                             "tld4.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%d1, {%f5,%f6}];",
                             "suld.b.2d.b32 {%r1}, [%d1, {%r2,%r3}];"}) {
        INFO(text);
        CHECK(refusal_of(text).ends_with("\n  PTX line 6"));
    }
}

TEST_CASE("an instruction newer than its text's version of PTX or target is refused, and so is the text") {
    const auto error_of = [](const std::string& version, const std::string& target, const std::string& body) {
        const auto result =
            load(".version " + version + "\n.target sm_" + target +
                 "\n.address_size 64\n.entry k() { .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b64 %rd<4>;\n" +
                 body + "\nret; }");
        const auto* error = std::get_if<LoadError>(&result);
        return error == nullptr ? "" : std::to_string(error->line) + ": " + error->message;
    };
    const char* const redux = "redux.sync.add.u32 %r1, %r2, %r3;";
    CHECK(error_of("7.0", "80", redux) == "");
    CHECK(error_of("7.0", "75", redux) == "5: redux.sync.add.u32 needs .target sm_80 or newer");
    CHECK(error_of("6.3", "75", redux) == "5: redux.sync.add.u32 needs PTX of .version 7.0 or newer");
    CHECK(error_of("7.8", "80", "mapa.shared::cluster.u32 %r1, %r2, 0;") ==
          "5: mapa.shared::cluster.u32 needs .target sm_90 or newer");
    CHECK(error_of("8.2", "80", ".reg .b128 %q;") == "4: .reg.b128 needs PTX of .version 8.3 or newer");
    // Modifiers are compared as whole names, and what cvt needs depends on both of its types.
    CHECK(error_of("9.0", "75", "cvt.rn.f16.f32 %r1, %f1;").find("needs") == std::string::npos);
    CHECK(error_of("9.0", "80", "cvt.rn.bf16.f32 %r1, %f1;").find("needs") == std::string::npos);
    CHECK(error_of("9.0", "80", "cvt.rn.bf16.s32 %r1, %r2;").find("needs .target sm_90") !=
          std::string::npos);
    CHECK(error_of("7.8", "80", "").empty());
    CHECK(error_of("7.9", "80", "").ends_with(": PTX of .version 7.9 is not known here"));
    CHECK(error_of("8589934592.0", "80", "").ends_with(": PTX of .version 8589934592.0 is not known here"));
    CHECK(error_of("6.5", "80", "").ends_with(": sm_80 needs PTX of .version 7.0 or newer"));
    CHECK(error_of("8.0", "33", "").ends_with(": 'sm_33' is not a target"));
    CHECK(error_of("8.0", "90a", "wgmma.fence.sync.aligned;") == "");
    CHECK(error_of("8.0", "90", "wgmma.fence.sync.aligned;") ==
          "5: wgmma.fence.sync.aligned needs .target sm_90a");
    CHECK(error_of("7.8", "90a", "").ends_with("sm_90a needs PTX of .version 8.0 or newer"));
    CHECK(error_of("8.0", "80a", "").ends_with(": 'sm_80a' is not a target"));
    CHECK(error_of("8.6", "100f", "").ends_with("sm_100f needs PTX of .version 8.8 or newer"));
}

// Otherwise these texts would run here and fail on a GPU.
TEST_CASE("what ptxas refuses of video instructions and of cvt.sat is refused with its line") {
    const auto refusal_of_add4 = [](const std::string& operands) {
        return refusal_of("vadd4.u32.u32.u32 " + operands + ";");
    };
    CHECK(refusal_of_add4("%r1, %r2, %r3, 0") ==
          "vadd4.u32.u32.u32: operand 3 must be a register without a selector\n  PTX line 6");
    CHECK(refusal_of_add4("%r1, %r2, 7, %r3") ==
          "vadd4.u32.u32.u32: operand 2 must be a register\n  PTX line 6");
    CHECK(refusal_of_add4("%r1, -%r2, %r3, %r4") ==
          "vadd4.u32.u32.u32: operand 1 must be a register\n  PTX line 6");
    CHECK(refusal_of_add4("%r1, %r2, %r3, %r4.b3210") ==
          "vadd4.u32.u32.u32: operand 3 must be a register without a selector\n  PTX line 6");
    CHECK(refusal_of_add4("%r1.b02, %r2, %r3, %r4") ==
          "vadd4.u32.u32.u32: '.b02' is not a mask\n  PTX line 6");
    CHECK(refusal_of_add4("%r1.b20, %r2.b0000, %r3, %r4") == "");
    CHECK(
        refusal_of("vadd.u32.u32.u32.add %r1, %r2, %r3, %r4.h0;") ==
        "vadd.u32.u32.u32.add: operand 3 must be a register without a selector, or a constant\n  PTX line 6");
    CHECK(refusal_of("vadd.u32.u32.u32.add %r1, 7, %r3.h0, 7;") == "");

    const std::pair<Type, const char*> types[] = {{Type::u8, "%h2"},  {Type::s8, "%h2"},  {Type::u16, "%h2"},
                                                  {Type::s16, "%h2"}, {Type::u32, "%r2"}, {Type::s32, "%r2"},
                                                  {Type::u64, "%d2"}, {Type::s64, "%d2"}};
    int refused = 0;
    for (const auto& [to, result] : types) {
        for (const auto& [from, source] : types) {
            const std::string opcode = std::string("cvt.sat.") + name_of(to) + "." + name_of(from);
            const std::string refusal = refusal_of(opcode + " " + result + ", " + source + ";");
            if (refusal.empty()) continue;
            ++refused;
            CHECK(refusal == opcode +
                                 " is not supported: the destination holds every value of the source, "
                                 "so .sat is illegal\n  PTX line 6");
            CHECK(refusal_of("cvt" + opcode.substr(7) + " " + result + ", " + source + ";") == "");
        }
    }
    CHECK(refused ==
          8 + 12 + 6);  // equal types; unsigned ones into wider ones; signed ones into wider signed ones
    CHECK(refusal_of("cvt.sat.u32.u16 %r1, %h1;") != "");
    CHECK(refusal_of("cvt.sat.u32.s16 %r1, %h1;") == "");
    CHECK(refusal_of("cvt.sat.s16.u16 %h1, %h2;") == "");
}

TEST_CASE("the order of modifiers does not matter") {
    for (const char* text :
         {"atom.add.relaxed.gpu.u32 %r1, [%d1], %r2;", "atom.global.cta.add.u32 %r1, [%d1], %r2;",
          "atom.relaxed.gpu.global.add.u32 %r1, [%d1], %r2;", "ld.volatile.global.v2.u32 {%r1,%r2}, [%d1];",
          "ld.global.nc.L1::no_allocate.u32 %r1, [%d1];"}) {
        INFO(text);
        CHECK(refusal_of(text) == "");
    }
}

TEST_CASE("a register of the wrong width is refused") {
    CHECK(refusal_of("add.s32 %r1, %r2, %d1;").find("64 bits where the instruction needs 32") !=
          std::string::npos);
    CHECK(refusal_of("add.s64 %r1, %d2, %d1;").find("32 bits where the instruction needs 64") !=
          std::string::npos);
}

TEST_CASE("calls of unknown functions are refused with their names") {
    const auto module = loaded(R"(
        .entry b() { { .param .b64 n; .param .b64 r; call (r), missing, (n); } ret; })");
    CHECK(module->find_kernel("b")->refusal.find("missing") != std::string::npos);
}

TEST_CASE("a kernel tells its parameters, shared and local memory") {
    const auto module = loaded(R"(
        .entry k(.param .u8 a, .param .u64 b, .param .align 16 .b8 c[20]) .maxntid 64 {
            .shared .align 16 .b8 s[100]; .local .align 8 .b8 l[24]; .reg .b64 %d<4>;
            mov.u64 %d1, s; mov.u64 %d2, l; ret; })");
    const Kernel& k = module->kernels.at(0);
    REQUIRE(k.refusal == "");
    REQUIRE(k.parameters.size() == 3);
    CHECK(k.parameters[1].offset == 8);
    CHECK(k.parameters[2].offset == 16);
    CHECK(k.parameter_bytes == 36);
    CHECK(k.static_shared_bytes == 100);
    CHECK(k.local_bytes >= 24);
    CHECK(k.max_threads == 64);
}

TEST_CASE("the machine has a handler for every row of the table") {
    using emulated::machine::baseline_registry;
    using emulated::machine::registry;
    int checked = 0;
    // Only rows whose operands are all letters: they are passed to the machine unchanged.
    for (const Row& row : operation_table()) {
        if (row.operands.find('*') != std::string_view::npos || row.operands.empty()) continue;
        const auto rounding = FlagSet{Flag::rz, Flag::rm, Flag::rp};
        row.types.each([&](Type type) {
            const auto visit = [&](Type second) {
                // Visits every subset of the selecting flags that an opcode can have.
                std::vector<Flag> flags;
                for (unsigned f = 0; f < static_cast<unsigned>(Flag::count); ++f) {
                    if (row.selecting.has(static_cast<Flag>(f))) flags.push_back(static_cast<Flag>(f));
                }
                REQUIRE(flags.size() <= 16);
                for (unsigned subset = 0; subset < (1u << flags.size()); ++subset) {
                    FlagSet chosen;
                    for (std::size_t f = 0; f < flags.size(); ++f) {
                        if (subset >> f & 1) chosen.add(flags[f]);
                    }
                    if (!row.one_of.empty() && !(chosen & row.one_of).single()) continue;
                    if ((chosen & row.all_of) != row.all_of) continue;
                    std::string spelled(row.name);
                    const Key key = machine_key(row, type, second, chosen);
                    const FlagSet directions = chosen & rounding;
                    if (!directions.empty() && !directions.single()) continue;
                    INFO(spelled << " type " << int(type) << " second " << int(second) << " flags "
                                 << chosen.digest());
                    CHECK(bool(registry().find(key)));
                    CHECK(bool(baseline_registry().find(key)));
                    ++checked;
                }
            };
            if (row.second.empty())
                visit(Type::none);
            else
                row.second.each(visit);
        });
    }
    CHECK(checked > 300);
}

TEST_CASE("a mask takes one byte of an address or of a number, as the address of a packed structure") {
    const auto module = loaded(
        ".global .align 8 .u64 n; .global .u8 p[3] = {0xFF00(generic(n)+4), 0XFF(0x1234), 0xFF00(0x1234)};");
    const Global& packed = module->globals.at(1);
    CHECK(packed.initial == std::vector<std::byte>{std::byte{0}, std::byte{0x34}, std::byte{0x12}});
    REQUIRE(packed.relocations.size() == 1);
    const Global::Relocation& byte = packed.relocations.front();
    CHECK((byte.offset == 0 && byte.global == 0 && byte.addend == 4 && byte.first_byte == 1 &&
           byte.bytes == 1));
    for (const char* const refused : {".b8 p[1] = {0xFF(n)}", ".u8 p[1] = {0xFFFF(n)}",
                                      ".u8 p[1] = {0xFF0(n)}", ".u64 p[1] = {0xFF(n)}", ".u8 p[1] = {n}"}) {
        const std::string text = std::string(".global .u64 n; .global ") + refused + ";";
        CHECK(std::holds_alternative<LoadError>(load(testing::sm_80_prologue + text)));
    }
}

TEST_CASE("a guarded instruction leaves the other lanes alone") {
    const auto out = run<std::uint32_t>(
        "mov.u32 result, 7; setp.lt.u32 %p1, lane, 10; @%p1 mov.u32 result, 9;@!%p1 add.u32 result, result, "
        "lane;");
    for (unsigned l = 0; l < 32; ++l) CHECK(out[l] == (l < 10 ? 9 : 7 + l));
}

TEST_CASE("setp writes a pair and combines with a third predicate") {
    const auto out = run<std::uint32_t>(
        "setp.lt.u32 %p3, lane, 20; setp.gt.and.u32 %p1|%p2, lane, 9, %p3;selp.b32 %r1, 1, 0, %p1; selp.b32 "
        "%r2, 2, 0, %p2; or.b32 result, %r1, %r2;");
    for (unsigned l = 0; l < 32; ++l) CHECK(out[l] == (l < 20 ? (l > 9 ? 1u : 2u) : 0u));
}

TEST_CASE("carries pass from one instruction to the next") {
    const auto out = run<std::uint64_t>(
        "not.b32 %r1, 0; shl.b32 %r2, lane, 1; add.cc.u32 %r3, %r1, %r2; addc.u32 %r4, 5, 6;mov.b64 result, "
        "{%r3, %r4};");
    for (std::uint64_t l = 0; l < 32; ++l) CHECK(out[l] == 0xffffffffull + 2 * l + (11ull << 32));
}
