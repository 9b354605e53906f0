#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "support.hpp"

namespace bascule::testing {
namespace {

/// The reason why a kernel is not in the image, or an empty string.
std::string absence(const Image& image, const std::string& kernel) {
    for (const auto& [name, reason] : image.absent) {
        if (name == kernel) return reason;
    }
    return {};
}

TEST_CASE("a text becomes PTX, and every kernel gets its lowered name, signature and line") {
    const Image image =
        compile("__global__ void a(float* p) { *p = 1; }\n\n__global__ void b(int n, double x) {}");
    REQUIRE(image.kernels.size() == 2);
    CHECK(image.kernels[0].name == "a");
    CHECK(image.kernels[0].lowered_name == "_Z1aPf");
    CHECK(image.kernels[1].lowered_name == "_Z1bid");
    CHECK(image.kernels[1].line == 3);
    CHECK(to_string(image.kernels[1].signature) == "void b(int n, double x)");
    CHECK(image.find("b") == &image.kernels[1]);
    CHECK(image.find("c") == nullptr);
    CHECK(contains(image.ptx, ".entry _Z1aPf"));
    CHECK(contains(image.ptx, ".entry _Z1bid"));
    CHECK(image.absent.empty());
    CHECK(image.compile_milliseconds > 0);
}

TEST_CASE("a virtual architecture gives PTX alone, a real one a cubin and its PTX") {
    Program one = program("__global__ void k() {}");
    const Image virtual_image = compiler().compile(one);
    CHECK(contains(virtual_image.ptx, ".target sm_80"));
    CHECK(virtual_image.cubin.empty());
    one.arch = parse_arch("sm_80");
    const Image real_image = compiler().compile(one);
    CHECK(contains(real_image.ptx, ".target sm_80"));
    CHECK(
        real_image.cubin.starts_with("\x7f"
                                     "ELF"));
}

TEST_CASE("extern C kernels keep their names, those in namespaces and with linkage of their own are found") {
    const Image image = compile(R"(
extern "C" __global__ void plain(int n) {}
namespace a { inline namespace v1 { __global__ void k(int n) {} } namespace { __global__ void hidden(float* p) { *p = 1; } } }
static __global__ void local(int n) {}
__global__ void __launch_bounds__(128) bounded(int n) {})");
    REQUIRE(image.kernels.size() == 5);
    CHECK(image.find("plain")->lowered_name == "plain");
    CHECK(image.find("a::v1::k")->lowered_name == "_ZN1a2v11kEi");
    CHECK(contains(image.ptx, ".entry " + image.find("a::hidden")->lowered_name));
    CHECK(contains(image.ptx, ".entry " + image.find("local")->lowered_name));
    CHECK(image.find("bounded") != nullptr);
}

TEST_CASE("a text without kernels is an image without kernels") {
    CHECK(compile("__device__ int x;").kernels.empty());
    CHECK(compile("").kernels.empty());
}

TEST_CASE("templates wait for their arguments, and each overload is a kernel of its own") {
    const Image image = compile(R"(
template <class T> __global__ void generic(T* p) {}
__global__ void twice(int n) {}
__global__ void twice(float x) {}
__global__ void k() {})");
    REQUIRE(image.kernels.size() == 3);
    CHECK(to_string(image.kernels[0].signature) == "void twice(int n)");
    CHECK(to_string(image.kernels[1].signature) == "void twice(float x)");
    CHECK(image.kernels[0].lowered_name != image.kernels[1].lowered_name);
    CHECK(image.kernels[1].line == 4);
    CHECK(image.kernels[2].name == "k");
}

TEST_CASE("an instance is compiled under its name expression, and its signature is the compiler's") {
    Program one =
        program("template <class T, int N> __global__ void fill(T* p) { p[0] = N; }\n__global__ void k() {}");
    one.instances = {{"fill", "fill<double, 4>"}};
    const Image image = compiler().compile(one);
    REQUIRE(image.kernels.size() == 1);
    CHECK(to_string(image.kernels[0].signature) == "void fill<double, 4>(double* p)");
    CHECK(contains(image.ptx, image.kernels[0].lowered_name));
}

TEST_CASE("signatures alone leave no code, and an instance that cannot be had says so") {
    Program one = program("template <class T> __global__ void fill(T* p) { p[0] = nowhere(p); }");
    one.instances = {{"fill", "fill<bascule::marker<0>>"}};
    one.purpose = Program::Purpose::signatures;
    const Image image = compiler().compile(one);
    REQUIRE(image.kernels.size() == 1);
    CHECK(image.kernels[0].signature.parameters[0].spelling == "bascule::marker<0>*");
    CHECK(image.ptx.empty());
    one.instances = {{"fill", "fill<7>"}};
    CHECK(contains(compile_error(one), "kernel 'fill' has no instance fill<7>"));
}

TEST_CASE("a kernel that an #if removes is left out, and what it says is found in the branch that stays") {
    Program one = program(R"(
#ifdef GONE
__global__ void gone(int n) {}
#endif
#if WIDE
__global__ void k(double x, int n) {}
#else
__global__ void k(float y) {}
#endif)");
    const Image image = compiler().compile(one);
    REQUIRE(image.kernels.size() == 1);
    CHECK(to_string(image.kernels[0].signature) == "void k(float y)");
    CHECK(image.kernels[0].line == 8);
    CHECK(contains(absence(image, "gone"), "an #if removes it"));
    one.options.defines = {{"WIDE", "1"}, {"GONE", ""}};
    CHECK(to_string(compiler().compile(one).find("k")->signature) == "void k(double x, int n)");
    CHECK(compiler().compile(one).find("gone") != nullptr);
}

TEST_CASE("a text of hundreds of kernels that are not there is compiled a bounded number of times") {
    std::string text = "#if 0\n";
    for (int i = 0; i < 400; ++i) text += fmt::format("__global__ void dead{}(int n) {{}}\n", i);
    text +=
        "#endif\n__global__ void k(float* x) {}\n__global__ void k(int n) {}\n__device__ void l(int n) {}\n";
    const Image image = compile(text + "__global__ void l(float* x) {}\n");
    REQUIRE(image.kernels.size() == 3);
    CHECK(image.find("l") != nullptr);
    CHECK(to_string(image.find("l")->signature) == "void l(float* x)");
}

TEST_CASE("a kernel whose parameters cannot be reflected is left out with NVRTC's words") {
    const Image image = compile(
        "class P { struct Q { int x; }; friend __global__ void k(Q* q); };\n"
        "__global__ void k(P::Q* q) {}\n__global__ void l() {}");
    CHECK(image.find("l") != nullptr);
    CHECK(contains(absence(image, "k"), "private or protected"));
}

TEST_CASE("the same text gives the same code, whatever its name and place") {
    Program one = program("__global__ void k(const char** p) { *p = __FILE__; }");
    const Image first = compiler().compile(one);
    one.source.name = "other.cu";
    one.source.first_line = 77;
    CHECK(compiler().compile(one).ptx == first.ptx);
}

TEST_CASE("an error stands at the user's own line, with the source line and a caret under its column") {
    Program one = program("__global__ void k(float* p) {\n    p[0] = speed * 2;\n}\n");
    one.source.first_line = 10;
    const std::string message = compile_error(one);
    CHECK(contains(message, "kernels.cu:11: error: identifier \"speed\" is undefined\n"));
    CHECK(contains(message, "      p[0] = speed * 2;\n             ^"));
    CHECK_FALSE(contains(message, "/bascule/"));
    CHECK_FALSE(contains(message, "__nv_name_map"));
}

TEST_CASE("what a CompileError knows: the whole log, the options, the architecture") {
    try {
        compile("__global__ void k() {\n    int unused;\n    oops;\n}\n");
        FAIL("compiled");
    } catch (const CompileError& error) {
        CHECK(contains(error.details().log, "kernels.cu:3: error: identifier \"oops\" is undefined"));
        CHECK(contains(error.details().log, "kernels.cu:2: warning"));
        CHECK_FALSE(contains(error.what(), "warning"));
        CHECK(error.details().architecture == "compute_80");
        CHECK(contains(error.details().options.at(0), "-arch=compute_80"));
    }
}

TEST_CASE("a missing semicolon shows the line that lacks it") {
    const std::string message =
        compile_error("__global__ void k(int* p) {\n    int x = 3\n\n    p[0] = x;\n}\n");
    CHECK(contains(message,
                   "kernels.cu:4: error: expected a \";\"\n      int x = 3\n      p[0] = x;\n      ^"));
}

TEST_CASE("a missing brace is told at the end of the text, and where it was opened") {
    Program one = program("__global__ void k(int n) {\n    if (n) {\n");
    one.source.first_line = 100;
    const std::string message = compile_error(one);
    CHECK(contains(message, "kernels.cu: at the end of the text: error: expected a \"}\""));
    CHECK(contains(message, "kernels.cu:101: note"));
}

TEST_CASE("an error inside a template names the user's line that asked for it") {
    Program one = program(
        "template <class T> __device__ void f(T t) { t.foo(); }\n__global__ void k() {\n    f(1);\n}\n");
    one.source.first_line = 50;
    const std::string message = compile_error(one);
    CHECK(contains(message, "kernels.cu:50: error"));
    CHECK(contains(message, "kernels.cu:52: note: detected during instantiation of \"void f(T)"));
    CHECK(contains(message, "      f(1);\n"));
}

TEST_CASE("of many errors ten are shown and the rest counted") {
    std::string text = "__global__ void k() {\n";
    for (int i = 0; i < 14; ++i) text += "    a" + std::to_string(i) + ";\n";
    const std::string message = compile_error(text + "}\n");
    CHECK(contains(message, "\"a9\""));
    CHECK_FALSE(contains(message, "\"a10\""));
    CHECK(contains(message, "4 more errors"));
}

TEST_CASE("errors of the text hide those of names, and the other way round nothing is lost") {
    const std::string message =
        compile_error("#if 0\n__global__ void gone() {}\n#endif\n__global__ void k() { oops; }");
    CHECK(contains(message, "kernels.cu:4: error"));
    CHECK_FALSE(contains(message, "gone"));
}

TEST_CASE("an error in a header names the header") {
    Program one = program("#include \"mine.h\"\n__global__ void k() { f(); }");
    one.options.headers = {{"mine.h", "\n\n__device__ void f() { oops; }\n"}};
    CHECK(contains(compile_error(one), "mine.h:3: error: identifier \"oops\" is undefined"));
}

TEST_CASE("headers come from memory, from include paths, and first from the source's directory") {
    const TemporaryDirectory first, second;
    first.write("value.h", "#define VALUE 1111\n");
    second.write("value.h", "#define VALUE 2222\n");
    Program one = program("#include \"value.h\"\n__global__ void k(int* p) { *p = VALUE; }");
    one.options.include_paths = {second.path()};
    CHECK(contains(compiler().compile(one).ptx, "2222"));
    one.source.directory = first.path();
    CHECK(contains(compiler().compile(one).ptx, "1111"));
    Program in_memory = program(one.source.text);
    in_memory.options.headers = {{"value.h", "#define VALUE 3333\n"}};
    CHECK(contains(compiler().compile(in_memory).ptx, "3333"));
}

TEST_CASE("a header that is missing brings help") {
    CHECK(contains(compile_error("#include <cub/nothing_of_ours.cuh>"), "nvidia-cuda-cccl"));
    CHECK(contains(compile_error("#include <cub/nothing.cuh>"), "pip install nvidia-cuda-cccl"));
    CHECK(contains(compile_error("#include \"mine.h\""), "include_paths"));
}

TEST_CASE("the toolkit's headers are found without being asked for") {
    const Image image =
        compile("#include <cuda_fp16.h>\n__global__ void k(__half* p) { *p = __float2half(1.0f); }");
    CHECK(image.kernels.size() == 1);
}

TEST_CASE("an option that NVRTC does not know is named") {
    Program one = program("__global__ void k() {}");
    one.options.extra = {"--no-such-option"};
    CHECK(contains(compile_error(one), "--no-such-option"));
}

TEST_CASE("an architecture that NVRTC does not know is named, with those that it knows") {
    Program one = program("__global__ void k() {}");
    one.arch = parse_arch("sm_30");
    const std::string message = compile_error(one);
    CHECK(contains(message, "sm_30"));
    CHECK(contains(message, "80"));
    CHECK(contains(message, "90"));
}

TEST_CASE("a NUL in the text is told, not compiled around") {
    CHECK(contains(compile_error(std::string("__global__ void k() {}\n") + '\0' + "oops"),
                   "kernels.cu:2: the text contains a NUL character"));
}

TEST_CASE("options reach NVRTC") {
    Program one = program("__global__ void k(float* p) { *p = __sinf(N) + p[1] / p[2]; }");
    one.options.defines = {{"N", "4"}};
    CHECK_FALSE(contains(compiler().compile(one).ptx, ".loc"));
    one.options.lineinfo = true;
    one.options.fast_math = true;
    const std::string ptx = compiler().compile(one).ptx;
    CHECK(contains(ptx, ".loc"));
    CHECK(contains(ptx, "div.approx.ftz.f32"));
    one.options.std = "c++20";
    one.source.text =
        "template <class T> concept C = true; template <C T> __device__ void f(T) {}\n"
        "__global__ void k() { f(N); }";
    CHECK(compiler().compile(one).kernels.size() == 1);
}

TEST_CASE("defines reach the text, with and without a value, with parameters, and those meant for NVRTC") {
    Program one = program("__global__ void k(T* p) { *p = SQUARE(3) + FLAG + __OWN; }");
    one.options.defines = {{"T", "int"}, {"SQUARE(x)", "((x) * (x) * 1000)"}, {"FLAG", ""}, {"__OWN", "100"}};
    CHECK(contains(compiler().compile(one).ptx, "9101"));
    one.options.defines[0].first = "no name";
    CHECK_THROWS_AS(compiler().compile(one), ArgumentError);
}

TEST_CASE("warnings are kept in the log at canonical places") {
    const Image image = compile("__global__ void k() { int unused; }");
    CHECK(contains(image.log, "warning"));
    CHECK(contains(image.log, "/bascule/"));
}

}  // namespace
}  // namespace bascule::testing
