#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <bascule/jit/text/tokenizer.hpp>

namespace bascule {
namespace {

/// "name(parameter, parameter)" of each kernel, separated by blanks; templates are marked T.
std::string summary(std::string_view text) {
    std::string out;
    for (const KernelDeclaration& kernel : find_kernels(text)) {
        if (!out.empty()) out += ' ';
        out += kernel.is_template ? "T:" : "";
        out += kernel.name + "(";
        for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
            out += (i == 0 ? "" : ",") + kernel.parameters[i];
        }
        out += ")";
    }
    return out;
}

struct KernelRow {
    const char* text;
    const char* expected;
};

TEST_CASE("every kernel of a text is found, with its qualified name and its parameters' names") {
    static constexpr KernelRow rows[] = {
        {"__global__ void k() {}", "k()"},
        {"__global__ void k(void) {}", "k()"},
        {"__global__ void k(int n);", "k(n)"},
        {"void __global__ k(int n) {}", "k(n)"},
        {"static __global__ void k(int n) {}", "k(n)"},
        {"__global__ auto k(int n) -> void {}", "k(n)"},
        {"__global__ void a(int n) {} __global__ void b(float* p) {}", "a(n) b(p)"},
        {"namespace n { __global__ void k() {} }", "n::k()"},
        {"namespace a { namespace b { __global__ void k() {} } __global__ void l() {} } __global__ void m() "
         "{}",
         "a::b::k() a::l() m()"},
        {"namespace a::b { __global__ void k() {} }", "a::b::k()"},
        {"inline namespace v1 { __global__ void k() {} }", "v1::k()"},
        {"namespace { __global__ void k() {} }", "k()"},
        {"namespace a { namespace { __global__ void k() {} } }", "a::k()"},
        {"namespace [[deprecated]] a { __global__ void k() {} }", "a::k()"},
        {"namespace a {} namespace b = a; __global__ void k() {}", "k()"},
        {"using namespace std; __global__ void k() {}", "k()"},
        {"namespace a { __global__ void k(int n); } __global__ void a::k(int n) {}", "a::k(n)"},
        {"extern \"C\" __global__ void k(int n) {}", "k(n)"},
        {"extern \"C\" { __global__ void k() {} } __global__ void l() {}", "k() l()"},
        {"extern \"C\" int x; __global__ void k() {}", "k()"},
        {"template <typename T> __global__ void k(T* p) {}", "T:k(p)"},
        {"template <int N, class T = float, bool B = (N > 2)> __global__ void k(T p) {}", "T:k(p)"},
        {"template <template <class> class C> __global__ void k(C<int> c) {}", "T:k(c)"},
        {"template <class T> requires (sizeof(T) > 2) __global__ void k(T p) {}", "T:k(p)"},
        {"template <class T> requires requires (T t) { t + 1; } __global__ void k(T p) {}", "T:k(p)"},
        {"template <class T> __global__ void k(T p) requires true {}", "T:k(p)"},
        {"template <class T> struct S {}; __global__ void k(S<int> s) {}", "k(s)"},
        {"template <class T> __device__ T f(T t) { return t; } __global__ void k() {}", "k()"},
        {"template <> __global__ void k<int>(int* p) {}", ""},
        {"template __global__ void k<int>(int*);", ""},
        {"__global__ void __launch_bounds__(256) k(int n) {}", "k(n)"},
        {"__global__ __launch_bounds__(256, 2) void k(int n) {}", "k(n)"},
        {"__launch_bounds__(256) __global__ void k(int n) {}", "k(n)"},
        {"__global__ void __cluster_dims__(2, 1, 1) k(int n) {}", "k(n)"},
        {"[[nodiscard]] __global__ void k(int n) {}", "k(n)"},
        {"__global__ [[gnu::weak(\"x\")]] void k(int n) {}", "k(n)"},
        {"__global__ __attribute__((used)) void k(int n) {}", "k(n)"},
        {"__global__ BOUNDS(256, 2) void k(int n) {}", "k(n)"},
        {"__global__ EXPORT void k(int n) {}", "k(n)"},
        {"struct S { int x; }; class T { void f() {} }; __global__ void k(S s) {}", "k(s)"},
        {"__device__ int f() { if (1) { return 2; } return 3; } __global__ void k() {}", "k()"},
    };
    for (const KernelRow& row : rows) {
        CAPTURE(std::string(row.text));
        CHECK(summary(row.text) == std::string(row.expected));
    }
}

TEST_CASE("a parameter's name is told from its type") {
    static constexpr KernelRow rows[] = {
        {"float x", "k(x)"},
        {"float", "k()"},
        {"const float* __restrict__ x", "k(x)"},
        {"const float*", "k()"},
        {"int (*f)(float)", "k(f)"},
        {"const float (*rows)[4]", "k(rows)"},
        {"float const* const x", "k(x)"},
        {"unsigned int n", "k(n)"},
        {"unsigned int", "k()"},
        {"unsigned n", "k(n)"},
        {"std::size_t n", "k(n)"},
        {"std::size_t", "k()"},
        {"::ns::Point p", "k(p)"},
        {"const Point", "k()"},
        {"struct Point p", "k(p)"},
        {"bascule::array_view<const float, 2> x, bascule::array_view<float> y", "k(x,y)"},
        {"bascule::array_view<float>", "k()"},
        {"pair<int, pair<int, int>> p, int q", "k(p,q)"},
        {"const __grid_constant__ Point p", "k(p)"},
        {"float x[4], int n", "k(x,n)"},
        {"int (*callback)(int, int), int n", "k(callback,n)"},
        {"float (&row)[4]", "k(row)"},
        {"[[maybe_unused]] int n", "k(n)"},
        {"int n = f(1, 2), float y = 1.0f", "k(n,y)"},
        {"T... rest", "k(rest)"},
        {"decltype(1) n", "k(n)"},
        {"alignas(16) Point p", "k(p)"},
        {"int /* count */ n /* of x */", "k(n)"},
        {"int a,\n    // the second\n    int b", "k(a,b)"},
    };
    for (const KernelRow& row : rows) {
        CAPTURE(std::string(row.text));
        CHECK(summary(std::string("__global__ void k(") + row.text + ") {}") == std::string(row.expected));
    }
}

TEST_CASE("what is no code does not fool it") {
    static constexpr KernelRow rows[] = {
        {"// __global__ void a() {}\n__global__ void k() {}", "k()"},
        {"/* __global__ void a() {} */ __global__ void k() {}", "k()"},
        {"// joined \\\n__global__ void a() {}\n__global__ void k() {}", "k()"},
        {"const char* s = \"__global__ void a() {}\"; __global__ void k() {}", "k()"},
        {"const char* s = \"\\\"__global__ void a() {}\"; __global__ void k() {}", "k()"},
        {"const char* s = R\"(\"__global__ void a() {}\")\"; __global__ void k() {}", "k()"},
        {"const char* s = R\"x()\" __global__ void a() {})x\"; __global__ void k() {}", "k()"},
        {"const char* s = u8R\"(})\"; __global__ void k() {}", "k()"},
        {"char c = '\"'; __global__ void k() {} char d = '\"';", "k()"},
        {"char c = '{'; namespace n { char d = '}'; __global__ void k() {} }", "n::k()"},
        {"int million = 1'000'000; __global__ void k() {}", "k()"},
        {"#define KERNEL __global__ void a() {}\n__global__ void k() {}", "k()"},
        {"#define KERNEL \\\n  __global__ void a() {}\n__global__ void k() {}", "k()"},
        {"#define OPEN {\nnamespace n { __global__ void k() {} }", "n::k()"},
        {"#define A /* a comment\n__global__ void a() {} */ 1\n__global__ void k() {}", "k()"},
        {"  # define X \"\n__global__ void k() {}", "k()"},
        {"__global__ void k() { const char* s = \"}\"; } __global__ void l() {}", "k() l()"},
        {"int my__global__ = 0; __global__ void k() {}", "k()"},
        {"", ""},
        {"__global__", ""},
        {"__global__ void k(", ""},
        {"__global__ void k(int n", ""},
        {"\"unterminated\n__global__ void k() {}", "k()"},
        {"/* unterminated __global__ void k() {}", ""},
        {"} } __global__ void k() {}", "k()"},
    };
    for (const KernelRow& row : rows) {
        CAPTURE(std::string(row.text));
        CHECK(summary(row.text) == std::string(row.expected));
    }
}

TEST_CASE("the branches of an #if do not unbalance the scopes behind it") {
    const char* text =
        "namespace n {\n"
        "#if A\n__global__ void k(int a) {\n#elif B\n__global__ void k(float b) {\n#else\n"
        "__global__ void k(char c) {\n#endif\n"
        "}\n}\n__global__ void l() {}";
    CHECK(summary(text) == "n::k(a) n::k(b) n::k(c) l()");
}

TEST_CASE("a declaration and its definition are one kernel, two definitions are two") {
    CHECK(summary("__global__ void k(int); __global__ void k(int n) {}") == "k(n)");
    CHECK(summary("__global__ void k(int n) {} __global__ void k(int);") == "k(n)");
    CHECK(summary("__global__ void k(int n) {} __global__ void k(float n, int m) {}") == "k(n) k(n,m)");
}

TEST_CASE("default arguments are counted, in a declaration or in the definition") {
    const auto defaults = [](std::string_view text) {
        const std::vector<KernelDeclaration> kernels = find_kernels(text);
        REQUIRE(kernels.size() == 1);
        return kernels[0].defaults;
    };
    CHECK(defaults("__global__ void k(float* p, int n) {}") == 0);
    CHECK(defaults("__global__ void k(float* p, int n = 4, A<1, 2> a = f(1, 2)) {}") == 2);
    CHECK(defaults("__global__ void k(int n = 4); __global__ void k(int n) {}") == 1);
    CHECK(defaults("__global__ void k(int n) {} __global__ void k(int n = 4);") == 1);
}

TEST_CASE("a kernel's line is the line of its name") {
    const std::vector<KernelDeclaration> kernels = find_kernels(
        "// first\n\n__global__ void a() {\n}\r\n#define X \\\n 1\n/* \n */ __global__ void\nb() {}");
    REQUIRE(kernels.size() == 2);
    CHECK(kernels[0].line == 3);
    CHECK(kernels[1].line == 9);
    CHECK(kernels[0].is_definition);
}

}  // namespace
}  // namespace bascule
