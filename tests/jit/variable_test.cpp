#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <bascule/jit/link/code.hpp>
#include <bascule/jit/questions/probed_program.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

/// A declaration in namespace ns, and the array that its variable becomes.
struct Row {
    const char* declared;
    const char* typestr;
    const char* shape;
    bool constant = false;
};

constexpr const char* types = R"(
struct Point { float x; int n[3]; char c; };
struct alignas(16) Wide { double d; };
enum Colour : int { red }; enum class Small : unsigned char { one };
template <class T> struct Box { T t; };
struct Outer { struct { int n[3]; } inner; };
constexpr int N = 6;
typedef float Row[8];
namespace ns {
)";

/// The #include lines that a declaration needs; most need none, which makes their compiles fast.
std::string headers_for(const std::string& declared) {
    if (contains(declared, "__half")) return "#include <cuda_fp16.h>\n";
    if (contains(declared, "bfloat")) return "#include <cuda_bf16.h>\n";
    return contains(declared, "complex") ? "#include <cuda/std/complex>\n" : "";
}

constexpr Row rows[] = {
    {"__constant__ float v[4][8]", "<f4", "(4, 8)"},
    {"__device__ int v", "<i4", "()"},
    {"__device__ bool v", "|b1", "()"},
    {"__device__ char v[3]", "|i1", "(3,)"},
    {"__device__ unsigned char v[3]", "|u1", "(3,)"},
    {"__device__ short v", "<i2", "()"},
    {"__device__ unsigned short v", "<u2", "()"},
    {"__device__ unsigned v[N]", "<u4", "(6,)"},
    {"__device__ long v", "<i8", "()"},
    {"__device__ unsigned long long v[N * 2][1]", "<u8", "(12, 1)"},
    {"__device__ double v[2][3][4][5]", "<f8", "(2, 3, 4, 5)"},
    {"__constant__ Row v[2]", "<f4", "(2, 8)"},
    {"__device__ __half v[5]", "<f2", "(5,)"},
    {"__device__ __half2 v[5]", "<f2", "(5, 2)"},
    {"__device__ __nv_bfloat16 v[5]", "<V2", "(5,)"},
    {"__device__ __nv_bfloat162 v", "<V2", "(2,)"},
    {"__constant__ float4 v[7]", "<f4", "(7, 4)"},
    {"__device__ float3 v", "<f4", "(3,)"},
    {"__device__ int1 v", "<i4", "(1,)"},
    {"__device__ ulonglong2 v[2]", "<u8", "(2, 2)"},
    {"__device__ uchar4 v", "|u1", "(4,)"},
    {"__device__ double2 v", "<f8", "(2,)"},
    {"__device__ cuda::std::complex<double> v", "<c16", "()"},
    {"__device__ Point v[5]", "|V20", "(5,)"},
    {"__device__ Wide v", "|V16", "()"},
    {"__device__ Box<short> v[3]", "|V2", "(3,)"},
    {"__constant__ struct { float a, b; int n; } v", "|V12", "()"},
    {"__device__ struct { double d[2]; char c; } v[3][2]", "|V24", "(3, 2)"},
    {"__device__ volatile union { int i; float f; } v", "|V4", "()"},
    {"__device__ decltype(Outer::inner) v[2]", "|V12", "(2,)"},
    {"__device__ Box<decltype(Outer::inner)> v", "|V12", "()"},
    {"__device__ decltype(Outer::inner)* v", "<u8", "()"},
    {"__device__ enum { first, second } v", "<i4", "()"},
    {"__device__ Colour v", "<i4", "()"},
    {"__device__ Small v[2]", "|u1", "(2,)"},
    {"__device__ float* v", "<u8", "()"},
    {"__device__ const Point* v[3]", "<u8", "(3,)"},
    {"__device__ float* volatile v", "<u8", "()"},
    {"__device__ void (*v)(int, float)", "<u8", "()"},
    {"__device__ volatile int v", "<i4", "()"},
    {"__device__ const int v = 7", "<i4", "()", true},
    {"__constant__ const float v[2] = {1, 2}", "<f4", "(2,)", true},
    {"__device__ const volatile unsigned char v[2] = {1, 2}", "|u1", "(2,)", true},
    {"__device__ const float4 v = {1, 2, 3, 4}", "<f4", "(4,)", true},
    {"__device__ const Point v = {}", "|V20", "()", true},
    {"__device__ const struct { int n; } v[2] = {}", "|V4", "(2,)", true},
    {"__device__ float* const v = nullptr", "<u8", "()", true},
    {"extern \"C\" __device__ float v[9]", "<f4", "(9,)"},
    {"static __device__ double v[2]", "<f8", "(2,)"},
    {"inline __device__ double v[2]", "<f8", "(2,)"},
    {"__device__ auto v = 2.0f", "<f4", "()"},
    {"__device__ __align__(64) float v[3]", "<f4", "(3,)"},
};

Variable ask(const Program& asked, const std::string& name) {
    return reflect_variable({asked, {}, cache()}, name);
}

Variable reflect(const std::string& text, const std::string& name, const std::string& arch = "compute_80") {
    Program asked = program(text);
    asked.arch = parse_arch(arch);
    return ask(asked, name);
}

}  // namespace

TEST_CASE("a variable of every type is the array that the compiler lays out") {
    for (const Row& row : rows) {
        CAPTURE(row.declared);
        const Variable variable =
            reflect(headers_for(row.declared) + types + row.declared + ";\n}\n", "ns::v");
        CHECK(variable.name == "ns::v");
        CHECK(to_typestr(variable.dtype) == row.typestr);
        CHECK(to_string(variable.shape) == row.shape);
        CHECK(variable.constant == row.constant);
    }
}

TEST_CASE("a variable's size is that of all its elements") {
    CHECK(reflect("__device__ double v[2][3][4];", "v").bytes() == 192);
    CHECK(reflect("__device__ float4 v[3];", "v").bytes() == 48);
    CHECK(reflect("struct P { char c[3]; }; __device__ P v[7];", "v").bytes() == 21);
}

TEST_CASE("a variable has the name that images call it by") {
    const std::string text =
        "namespace ns { __constant__ float table[4]; static __device__ int hidden;\n"
        "namespace { __device__ int deep; } inline namespace v1 { __device__ int inner; }\n"
        "template <class T> __device__ T scale = T(2); }\n"
        "extern \"C\" __device__ int plain;\n"
        "__global__ void use(float* p) { p[0] = ns::table[0] + ns::hidden + ns::deep + ns::inner + plain\n"
        "                                       + ns::scale<float>; ns::table; }\n";
    const std::string ptx = compile(text).ptx;
    for (const char* name :
         {"ns::table", "ns::hidden", "ns::deep", "ns::inner", "ns::scale<float>", "plain", "::plain"}) {
        CAPTURE(name);
        const Variable variable = reflect(text, name);
        CHECK(contains(ptx, variable.lowered_name));
    }
    CHECK(reflect(text, "ns::table").lowered_name == "_ZN2ns5tableE");
    CHECK(reflect(text, "plain").lowered_name == "plain");
    CHECK(reflect(text, "ns::scale<float>").lowered_name == "_ZN2ns5scaleIfEE");
}

TEST_CASE("an image tells which variables are in constant memory") {
    const Image image = compile(
        "__constant__ float table[4]; __constant__ double table2 = 1; extern \"C\" __constant__ int plain;\n"
        "__device__ int tab; __device__ float counts[2] = {1, 2}; __constant__ const float* where = counts;\n"
        "__global__ void use(float* p) { p[0] = table[0] + table2 + plain + tab + *where; }\n");
    const CodeOutline outline = outline_of_ptx({"k.cu", image.ptx, CodeKind::ptx});
    for (const char* name : {"table", "table2", "plain", "where"}) {
        CAPTURE(std::string(name));
        REQUIRE(outline.find(name) != nullptr);
        CHECK(outline.find(name)->is_constant);
    }
    for (const char* name : {"tab", "counts"}) {
        CAPTURE(std::string(name));
        REQUIRE(outline.find(name) != nullptr);
        CHECK_FALSE(outline.find(name)->is_constant);
    }
}

TEST_CASE("a variable that only one file sees is found in images with other contents") {
    const std::string text =
        "static __device__ int hidden; namespace ns { namespace { __device__ int deep; } }\n"
        "namespace ns2 { static __device__ int hidden; }\n"
        "__global__ void last() { hidden = ns::deep + ns2::hidden; }\n";
    const Image other = compile("__device__ int first_symbol; __global__ void first() {}\n" + text);
    for (const char* name : {"hidden", "ns::deep", "ns2::hidden"}) {
        CAPTURE(std::string(name));
        const Variable variable = reflect(text, name);
        if (name != std::string("hidden")) CHECK_FALSE(contains(other.ptx, variable.lowered_name));
        const std::string found = name_in_image(variable, other.ptx);
        CHECK(contains(other.ptx, "u32 " + found + ";"));
        CHECK(found ==
              reflect("__device__ int first_symbol; __global__ void first() {}\n" + text, name).lowered_name);
    }
    const Variable plain = reflect("__device__ int plain;", "plain");
    CHECK(name_in_image(plain, other.ptx) == "plain");
}

TEST_CASE("a variable's type is that of the architecture and the options") {
    const std::string text =
        "#if __CUDA_ARCH__ >= 900\n__device__ double v;\n#else\n__device__ float v[N];\n#endif\n";
    Program asked = program(text);
    asked.options.defines = {{"N", "5"}};
    CHECK(to_string(ask(asked, "v").shape) == "(5,)");
    asked.options.defines = {{"N", "6"}};
    CHECK(to_string(ask(asked, "v").shape) == "(6,)");
    asked.arch = parse_arch("sm_90a");
    CHECK(to_typestr(ask(asked, "v").dtype) == "<f8");
}

TEST_CASE("a variable is asked for once, and adds nothing to the program's own image") {
    const std::string text = "__device__ int once; __global__ void k() { once = 1; }";
    const Program asked = program(text);
    const std::string before = cache().image(asked).image->ptx;
    const std::uint64_t compiled = cache().statistics().compiled;
    ask(asked, "once");
    ask(asked, "once");
    CHECK(cache().statistics().compiled == compiled + 1);
    CHECK(cache().image(asked).image->ptx == before);
    CHECK(compile(text).ptx == before);
}

TEST_CASE("a name that is no variable is an error about the name") {
    const std::string text = "__device__ int known; __device__ void f() {}\n";
    for (const char* name :
         {"unknown", "ns::known", "f", "int", "known +", "known), (known", "extern_array"}) {
        CAPTURE(std::string(name));
        std::string about;
        try {
            reflect(text + std::string("extern __device__ int extern_array[];"), name);
        } catch (const CompileError& error) {
            about = error.details().name_expression;
        }
        CHECK(about == std::string(name));
    }
}

TEST_CASE("a text that does not compile is an error at the text's own line") {
    const std::string message = message_of<CompileError>(
        [] { reflect("__device__ int v;\n__device__ int w = undefined_thing;\n", "v"); });
    CHECK(contains(message, "kernels.cu:2"));
    CHECK(contains(message, "undefined_thing"));
}

TEST_CASE("the variables of a text are found for messages") {
    const std::vector<std::string> found = find_variables(R"(
        __device__ int a, b[3] = {1, 2}, *c;
        namespace outer { namespace inner::most { __constant__ float table[2][2]; } __device__ float4 d; }
        // __device__ int comment;
        extern "C" { __device__ int e; }
        static const __device__ __align__(16) Point f = {1, {2}};
        template <class T> __device__ T scale = T(2);
        __device__ cuda::std::complex<float> g{0};
        __device__ int helper(int x) { int y = x; __shared__ int z; return y; }
        __global__ void k(int* p) { static __device__ int local; }
        __constant__ int h;
        __constant__ struct { float a, b; int n; } i;
        __device__ struct Named final : ns::Base { int x; } j[2], k;
        __device__ enum class E : int { one, two } l = E::one;
        __device__ struct ns::Point m{1, 2}, n = {3, 4};
        __device__ union { int i; float f; } const o{};
    )");
    const std::vector<std::string> expected = {"a",        "b", "c", "outer::inner::most::table",
                                               "outer::d", "e", "f", "scale",
                                               "g",        "h", "i", "j",
                                               "k",        "l", "m", "n",
                                               "o"};
    CHECK(found == expected);
}

}  // namespace bascule::testing
