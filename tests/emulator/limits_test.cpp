// Limits of a PTX text: nesting depth, sizes of variables, undefined names, target architectures.
#include <functional>
#include <string>

#include <doctest/doctest.h>

#include "client.hpp"
#include "program/code.hpp"
#include "program/loaded_module.hpp"
#include "ptx_device.hpp"

using namespace emulated::program;

namespace {

std::string error_of(const std::string& text, int newest_architecture = 0) {
    const auto loaded = load(text, newest_architecture);
    const auto* error = std::get_if<LoadError>(&loaded);
    return error == nullptr ? "" : error->message;
}

bool says(const std::string& message, const char* part) { return message.find(part) != std::string::npos; }

std::string repeated(const std::string& text, int times) {
    std::string made;
    for (int i = 0; i < times; ++i) made += text;
    return made;
}

std::string limited_kernel(const std::string& body, const std::string& parameters = "") {
    return ".entry _Z1kPf(" + parameters + ") { .reg .b32 %r<9>; .reg .b64 %d<9>; " + body + " ret; }\n";
}

// A text in which a construct is nested `depth` times.
struct Shape {
    const char* name;
    std::function<std::string(int)> text;
};
const Shape shapes[] = {
    {"blocks",
     [](int depth) {
         return limited_kernel(repeated("{", depth) + " mov.u32 %r1, 1;" + repeated("}", depth));
     }},
    {"parentheses of a constant",
     [](int depth) {
         return limited_kernel("mov.u32 %r1, " + repeated("(", depth) + "1" + repeated(")", depth) + ";");
     }},
    {"signs", [](int depth) { return limited_kernel("mov.u32 %r1, 0+" + repeated("-", depth) + "1;"); }},
    {"complements", [](int depth) { return ".global .b32 x = " + repeated("~", depth) + "1;"; }},
    {"negated operands",
     [](int depth) {
         return limited_kernel(".reg .pred %p<2>; selp.b32 %r1, 1, 2, " + repeated("!", depth) + "%p1;");
     }},
    {"lists",
     [](int depth) {
         return limited_kernel("mov.b32 %r1, " + repeated("{", depth) + "%r1" + repeated("}", depth) + ";");
     }},
    {"initialisers",
     [](int depth) {
         return ".global .b32 x[1] = " + repeated("{", depth) + "1" + repeated("}", depth) + ";";
     }},
    {"addresses",
     [](int depth) {
         return limited_kernel("ld.global.u32 %r1, [" + repeated("(", depth) + "8" + repeated(")", depth) +
                               "];");
     }},
};

}  // namespace

TEST_CASE("what is nested too deeply is an error in every shape, and a hundred levels are not") {
    for (const Shape& shape : shapes) {
        CAPTURE(shape.name);
        CHECK_FALSE(says(error_of(testing::sm_80_prologue + shape.text(100)), "nested"));
        CHECK(
            says(error_of(testing::sm_80_prologue + shape.text(20'000)), "nested more than 256 levels deep"));
        CHECK(says(error_of(testing::sm_80_prologue + shape.text(2'000'000)),
                   "nested more than 256 levels deep"));
    }
}

TEST_CASE("a module has a bounded number of registers") {
    const std::string function = ".func f() { .reg .b32 %r<9000000>; ret; }\n";
    CHECK(error_of(testing::sm_80_prologue + function) == "");
    CHECK(says(error_of(testing::sm_80_prologue + function + ".func g() { .reg .b32 %r<9000000>; ret; }"),
               "16777216 registers"));
    CHECK(says(error_of(testing::sm_80_prologue + ".func f() { .reg .b32 %r<18446744073709551615>; ret; }"),
               "16777216 registers"));
}

TEST_CASE("static shared memory above 48 KiB is refused, and the error names dynamic shared memory") {
    const auto text = [](const std::string& bytes) {
        return testing::sm_80_prologue + ".shared .align 4 .b8 s[" + bytes + "];\n" +
               limited_kernel("mov.u64 %d1, s;");
    };
    CHECK(error_of(text("49152")) == "");
    const std::string message = error_of(text("49153"));
    CHECK(says(message, "kernel 'k(float*)' needs 49153 bytes of static shared memory"));
    CHECK(says(message, "49152"));
    CHECK(says(message, "extern __shared__"));
    CHECK(says(error_of(text("17825792")), "17825792 bytes"));  // would reach the window of local memory
    CHECK(says(error_of(text("4294967296")), "4294967296 bytes"));
    CHECK(says(error_of(text("18446744073709551615")), "shared memory"));
    // Variables that a kernel does not use do not count.
    CHECK(error_of(testing::sm_80_prologue + ".shared .align 4 .b8 s[49153];\n" + limited_kernel("")) == "");
}

TEST_CASE("several shared variables count together") {
    const std::string text =
        testing::sm_80_prologue + ".shared .align 4 .b8 a[30000];\n.shared .align 4 .b8 b[30000];\n";
    CHECK(error_of(text + limited_kernel("mov.u64 %d1, a;")) == "");
    CHECK(says(error_of(text + limited_kernel("mov.u64 %d1, a; mov.u64 %d2, b;")),
               "60000 bytes of static shared"));
}

TEST_CASE("local memory above 512 KiB a thread is refused, frames of recursive functions included") {
    const auto text = [](const std::string& bytes) {
        return testing::sm_80_prologue +
               limited_kernel(".local .align 4 .b8 l[" + bytes + "]; mov.u64 %d1, l;");
    };
    CHECK(error_of(text("524288")) == "");
    CHECK(says(error_of(text("524289")), "524289 bytes of local memory for each thread"));
    CHECK(says(error_of(text("18446744073709551615")), "local memory"));
    const auto recursion = [](const std::string& bytes) {
        return testing::sm_80_prologue + ".func f() { .local .align 4 .b8 l[" + bytes +
               "]; .reg .b64 %d<2>; mov.u64 %d1, l; call.uni f; ret; }\n" + limited_kernel("call.uni f;");
    };
    CHECK(error_of(recursion("524288")) == "");
    CHECK(says(error_of(recursion("524289")), "bytes of local memory"));
}

TEST_CASE("constant variables above 64 KiB are refused") {
    CHECK(error_of(testing::sm_80_prologue +
                   ".const .align 4 .b8 a[32768];\n.const .align 4 .b8 b[32768];\n") == "");
    const std::string message =
        error_of(testing::sm_80_prologue + ".const .align 4 .b8 a[32768];\n.const .align 4 .b8 b[32769];\n");
    CHECK(says(message, "with 'b' the constant variables of this module need 65537 bytes"));
    CHECK(says(error_of(testing::sm_80_prologue + ".const .b8 a[18446744073709551615];"),
               "constant variables"));
}

TEST_CASE("parameters have 4 KiB, and nearly 32 KiB since PTX 8.1 on sm_70") {
    const auto text = [](const char* version, const char* target, int bytes) {
        return std::string(".version ") + version + "\n.target " + target + "\n.address_size 64\n" +
               limited_kernel("", ".param .align 4 .b8 p[" + std::to_string(bytes) + "]");
    };
    CHECK(error_of(text("8.0", "sm_80", 4096)) == "");
    CHECK(says(error_of(text("8.0", "sm_80", 4097)), "the parameters of kernel 'k(float*)' need 4097 bytes"));
    CHECK(says(error_of(text("8.1", "sm_61", 4097)), "a kernel can have 4096"));
    CHECK(error_of(text("8.1", "sm_70", 32764)) == "");
    CHECK(error_of(text("9.0", "sm_80", 32764)) == "");
    CHECK(says(error_of(text("9.0", "sm_80", 32765)), "a kernel can have 32764"));
}

TEST_CASE("arguments of functions lie in local memory") {
    const std::string text = testing::sm_80_prologue + ".func f(.param .b8 p[524289]) { ret; }\n";
    CHECK(says(error_of(text), "524289 bytes"));
}

TEST_CASE("sizes that overflow are errors") {
    CHECK(says(error_of(testing::sm_80_prologue + ".global .b64 a[4294967296][4294967296];"),
               "larger than any memory"));
    CHECK(says(error_of(testing::sm_80_prologue + ".global .align 2147483648 .b8 a[4];"),
               "a power of two up to"));
    CHECK(says(error_of(testing::sm_80_prologue + ".global .align 4294967297 .b8 a[4];"),
               "a power of two up to"));
}

TEST_CASE("what is used and not defined fails the module, with its C++ name and its place") {
    const std::string text =
        testing::sm_80_prologue + ".extern .func (.param .b32 r) _Z6helperf(.param .b32 x);\n" +
        ".extern .global .align 4 .f32 _ZN3lib5scaleE;\n.extern .shared .align 4 .b8 s[];\n" +
        ".file 1 \"saxpy.cu\"\n" + limited_kernel(R"(
        .loc 1 12 3
        { .param .b32 x; .param .b32 r; call.uni (r), _Z6helperf, (x); }
        .loc 1 13 3
        mov.u64 %d1, _ZN3lib5scaleE; mov.u64 %d2, s;)");
    const auto loaded = load(text);
    REQUIRE(std::holds_alternative<LoadError>(loaded));
    const LoadError& error = std::get<LoadError>(loaded);
    CHECK(error.line == 10);
    CHECK(error.message ==
          "not defined: 'helper(float)', 'lib::scale'. Every function and variable that a module uses must "
          "be defined in its own text\n  'helper(float)' is used at line 12 of saxpy.cu\n"
          "  'lib::scale' is used at line 13 of saxpy.cu");
}

TEST_CASE("what is declared and not used need not be defined, nor what CUDA provides") {
    CHECK(error_of(testing::sm_80_prologue + ".extern .func f(.param .b32 x);\n.extern .global .b32 x;\n" +
                   limited_kernel("")) == "");
    CHECK(error_of(testing::sm_80_prologue +
                   ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n" +
                   limited_kernel(
                       "{ .param .b64 f; .param .b64 v; .param .b32 r; call.uni (r), vprintf, (f, v); }")) ==
          "");
    CHECK(error_of(testing::sm_80_prologue + ".extern .global .b32 x;\n.visible .global .b32 x;\n" +
                   limited_kernel("mov.u64 %d1, x;")) == "");
}

TEST_CASE("an initialiser that names what is not defined fails the module") {
    CHECK(says(error_of(testing::sm_80_prologue + ".extern .global .b32 x;\n.global .u64 p = x;"),
               "not defined: 'x'"));
    CHECK(says(error_of(testing::sm_80_prologue + ".extern .func f();\n.global .u64 p[2] = {0, f};"),
               "not defined: 'f'"));
}

TEST_CASE("PTX for a newer architecture is refused, before anything that only that one has") {
    const auto text = [](const char* target) {
        return std::string(".version 9.0\n.target ") + target + "\n.address_size 64\n.global .b256 new_type;";
    };
    for (const char* target : {"sm_86", "sm_90", "sm_90a", "sm_100f", "sm_120"}) {
        CAPTURE(target);
        CHECK(says(error_of(text(target), 80), "and the device is sm_80: compile for compute_80 or older"));
        CHECK(says(error_of(text(target)), ".b256"));
    }
    CHECK(error_of(".version 8.0\n.target sm_75, debug\n.address_size 64\n", 80) == "");
}

TEST_CASE("the driver answers as one does for what cannot be loaded") {
    client::Device device;
    const auto load_module = [&](const std::string& text) {
        CUmodule module = nullptr;
        return device.api.cuModuleLoadDataEx(&module, text.c_str(), 0, nullptr, nullptr);
    };
    CHECK(load_module(".version 8.0\n.target sm_90\n.address_size 64\n") == CUDA_ERROR_INVALID_PTX);
    CHECK(says(device.api.report(), "sm_90"));
    CHECK(load_module(testing::sm_80_prologue + ".shared .b8 s[17825792];\n" +
                      limited_kernel("mov.u64 %d1, s;")) == CUDA_ERROR_INVALID_PTX);
    CHECK(load_module(testing::sm_80_prologue + ".extern .global .b32 x;\n" +
                      limited_kernel("mov.u64 %d1, x;")) == CUDA_ERROR_INVALID_PTX);
    CHECK(load_module(testing::sm_80_prologue + shapes[0].text(20'000)) == CUDA_ERROR_INVALID_PTX);
    // The size of all memory of the device, and more.
    CHECK(load_module(testing::sm_80_prologue + ".global .b8 c[4294967296];") == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(load_module(testing::sm_80_prologue + ".global .b8 c[9223372036854775807];") ==
          CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(load_module(testing::sm_80_prologue + ".global .b8 c[64];") == CUDA_SUCCESS);
}
