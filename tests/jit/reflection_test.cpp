#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <bascule/jit/signatures/demangle.hpp>
#include <bascule/jit/signatures/demangled_type.hpp>
#include <bascule/jit/signatures/reflection.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

using Kind = ParameterType::Kind;

/// One parameter as it is declared, and its expected properties.
struct Row {
    const char* declared;
    const char* spelling;
    Kind kind;
    const char* dtype;  ///< typestr of the scalar or of the elements; empty: not checked
    std::uint32_t bytes, alignment;
    const char* flags = "";  ///< c: constant, b: bfloat16, h: character, v: void, s: structure, p: pointer,
                             ///< f: function, o: elements without a dtype, 1-9: rank, or lanes after an l
};

constexpr const char* types = R"(
#include <cuda_fp16.h>
#include <cuda_bf16.h>
struct Point { float x, y; double z; };
namespace ns { struct Tiny { char c; }; enum Colour { red }; enum Large { large = 3000000000u }; template <class T, int N> struct Box { T t[N]; };
               template <int A> struct Outer { template <class T> struct Inner { T t; }; }; }
typedef int (*callback)(int);
typedef float (*rows)[4];
typedef float (*planes)[2][4];
typedef int Point::*member;
union Either { int i; double d; };
struct Counted { int i; __device__ Counted(const Counted& other) : i(other.i) {} };
namespace ns { struct Hidden; enum class Level : short { low }; enum class Flag : bool { no }; }
)";

constexpr Row all_rows[] = {
    {"bool", "bool", Kind::scalar, "|b1", 1, 1},
    {"char", "char", Kind::scalar, "|i1", 1, 1, "h"},
    {"signed char", "signed char", Kind::scalar, "|i1", 1, 1},
    {"unsigned char", "unsigned char", Kind::scalar, "|u1", 1, 1},
    {"short", "short", Kind::scalar, "<i2", 2, 2},
    {"unsigned short", "unsigned short", Kind::scalar, "<u2", 2, 2},
    {"int", "int", Kind::scalar, "<i4", 4, 4},
    {"const int", "int", Kind::scalar, "<i4", 4, 4},
    {"unsigned", "unsigned int", Kind::scalar, "<u4", 4, 4},
    {"long", "long", Kind::scalar, "<i8", 8, 8},
    {"unsigned long", "unsigned long", Kind::scalar, "<u8", 8, 8},
    {"long long", "long long", Kind::scalar, "<i8", 8, 8},
    {"unsigned long long", "unsigned long long", Kind::scalar, "<u8", 8, 8},
    {"size_t", "unsigned long", Kind::scalar, "<u8", 8, 8},
    {"float", "float", Kind::scalar, "<f4", 4, 4},
    {"double", "double", Kind::scalar, "<f8", 8, 8},
    {"__half", "__half", Kind::scalar, "<f2", 2, 2},
    {"half", "__half", Kind::scalar, "<f2", 2, 2},
    {"__nv_bfloat16", "__nv_bfloat16", Kind::scalar, "<V2", 2, 2, "b"},
    {"float*", "float*", Kind::pointer, "<f4", 8, 8},
    {"const float*", "const float*", Kind::pointer, "<f4", 8, 8, "c"},
    {"float const* const", "const float*", Kind::pointer, "<f4", 8, 8, "c"},
    {"float* __restrict__", "float*", Kind::pointer, "<f4", 8, 8},
    {"const double* __restrict__", "const double*", Kind::pointer, "<f8", 8, 8, "c"},
    {"bool*", "bool*", Kind::pointer, "|b1", 8, 8},
    {"char*", "char*", Kind::pointer, "|i1", 8, 8, "h"},
    {"const unsigned char*", "const unsigned char*", Kind::pointer, "|u1", 8, 8, "c"},
    {"long long*", "long long*", Kind::pointer, "<i8", 8, 8},
    {"__half*", "__half*", Kind::pointer, "<f2", 8, 8},
    {"const __nv_bfloat16*", "const __nv_bfloat16*", Kind::pointer, "<V2", 8, 8, "cb"},
    {"void*", "void*", Kind::pointer, "", 8, 8, "v"},
    {"const void*", "const void*", Kind::pointer, "", 8, 8, "cv"},
    {"Point*", "Point*", Kind::pointer, "|V16", 8, 8, "s"},
    {"const float4*", "const float4*", Kind::pointer, "<f4", 8, 8, "cl4"},
    {"volatile int*", "volatile int*", Kind::pointer, "<i4", 8, 8},
    {"const volatile int*", "const volatile int*", Kind::pointer, "<i4", 8, 8, "c"},
    {"__half2*", "__half2*", Kind::pointer, "<f2", 8, 8, "l2"},
    {"const __nv_bfloat162*", "const __nv_bfloat162*", Kind::pointer, "<V2", 8, 8, "cbl2"},
    {"ns::Colour*", "ns::Colour*", Kind::pointer, "<i4", 8, 8},
    {"ns::Hidden*", "ns::Hidden*", Kind::pointer, "|V0", 8, 8, "o"},
    {"Either*", "Either*", Kind::pointer, "|V8", 8, 8, "o"},
    {"rows", "float (*)[4]", Kind::pointer, "<f4", 8, 8, "l4"},
    {"planes", "float (*)[2][4]", Kind::pointer, "<f4", 8, 8, "l8"},
    {"float**", "float**", Kind::pointer, "<u8", 8, 8, "p"},
    {"const float* const*", "const float* const*", Kind::pointer, "<u8", 8, 8, "cp"},
    {"bascule::array_view<float>", "bascule::array_view<float>", Kind::array_view, "<f4", 24, 8},
    {"bascule::array_view<const float>", "bascule::array_view<const float>", Kind::array_view, "<f4", 24, 8,
     "c"},
    {"bascule::array_view<float, 1>", "bascule::array_view<float>", Kind::array_view, "<f4", 24, 8},
    {"bascule::array_view<const double, 2>", "bascule::array_view<const double, 2>", Kind::array_view, "<f8",
     40, 8, "c2"},
    {"bascule::array_view<unsigned char, 3>", "bascule::array_view<unsigned char, 3>", Kind::array_view,
     "|u1", 56, 8, "3"},
    {"const bascule::array_view<int, 4>", "bascule::array_view<int, 4>", Kind::array_view, "<i4", 72, 8, "4"},
    {"bascule::array_view<Point>", "bascule::array_view<Point>", Kind::array_view, "|V16", 24, 8, "s"},
    {"bascule::array_view<const int2>", "bascule::array_view<const int2>", Kind::array_view, "<i4", 24, 8,
     "cl2"},
    {"bascule::array_view<const float*>", "bascule::array_view<const float*>", Kind::array_view, "<u8", 24, 8,
     "p"},
    {"Point", "Point", Kind::structure, "|V16", 16, 8},
    {"ns::Tiny", "ns::Tiny", Kind::structure, "|V1", 1, 1},
    {"ns::Colour", "ns::Colour", Kind::scalar, "<i4", 4, 4},
    {"ns::Large", "ns::Large", Kind::scalar, "<u4", 4, 4},
    {"ns::Level", "ns::Level", Kind::scalar, "<i2", 2, 2},
    {"ns::Flag", "ns::Flag", Kind::scalar, "|b1", 1, 1},
    {"Either", "Either", Kind::opaque, "|V8", 8, 8},
    {"Counted", "Counted", Kind::opaque, "|V4", 4, 4},
    {"member", "int Point::*", Kind::opaque, "|V8", 8, 8},
    {"dim3", "dim3", Kind::vector, "<u4", 12, 4, "l3"},
    {"double4_32a", "double4_32a", Kind::vector, "<f8", 32, 32, "l4"},
    {"uchar4", "uchar4", Kind::vector, "|u1", 4, 4, "l4"},
    {"ns::Box<const float*, 3>", "ns::Box<const float*, 3>", Kind::structure, "|V24", 24, 8},
    {"ns::Box<ns::Box<int, 2>, 3>", "ns::Box<ns::Box<int, 2>, 3>", Kind::structure, "|V24", 24, 4},
    {"ns::Outer<3>::Inner<float>", "ns::Outer<3>::Inner<float>", Kind::structure, "|V4", 4, 4},
    {"float4", "float4", Kind::vector, "<f4", 16, 16, "l4"},
    {"callback", "int (*)(int)", Kind::pointer, "", 8, 8, "f"},
};

/// The rows whose types the NVRTC under test has. double4_32a is new in 13.0.
std::vector<Row> known_rows() {
    std::vector<Row> rows(std::begin(all_rows), std::end(all_rows));
    if (compiler().nvrtc()->version().major < 13) {
        std::erase_if(rows, [](const Row& row) { return std::string(row.declared) == "double4_32a"; });
    }
    return rows;
}

TEST_CASE("each kind of parameter is known by spelling, dtype, size and alignment") {
    const std::vector<Row> rows = known_rows();
    std::string text = std::string(types) + "__global__ void k(";
    for (std::size_t i = 0; i < std::size(rows); ++i) {
        text += (i == 0 ? "" : ", ") + std::string(rows[i].declared) + " p" + std::to_string(i);
    }
    const Image image = compile(text + ") {}");
    const Signature& signature = image.kernels.at(0).signature;
    REQUIRE(signature.parameters.size() == std::size(rows));
    std::uint32_t end = 0;
    for (std::size_t i = 0; i < std::size(rows); ++i) {
        const Row& row = rows[i];
        const Parameter& got = signature.parameters[i];
        const std::string flags = row.flags;
        const auto has = [&](char flag) { return flags.find(flag) != flags.npos; };
        CAPTURE(std::string(row.declared));
        CHECK(got.name == "p" + std::to_string(i));
        CHECK(got.spelling == std::string(row.spelling));
        CHECK(got.type.kind == row.kind);
        if (row.dtype[0] != '\0') CHECK(to_typestr(got.type.dtype) == std::string(row.dtype));
        CHECK(got.type.constant == has('c'));
        CHECK((got.type.dtype.format == DType::Format::bfloat16) == has('b'));
        CHECK(got.type.character == has('h'));
        using Element = ParameterType::Element;
        CHECK((got.type.element_kind == Element::any) == has('v'));
        CHECK((got.type.element_kind == Element::structure) == has('s'));
        CHECK((got.type.element_kind == Element::pointer) == has('p'));
        CHECK((got.type.element_kind == Element::function) == has('f'));
        CHECK((got.type.element_kind == Element::opaque) == has('o'));
        const bool digit = !flags.empty() && flags.back() >= '1' && flags.back() <= '9';
        CHECK(got.type.lanes == (digit && has('l') ? flags.back() - '0' : 0));
        CHECK(got.type.rank == (digit && !has('l') ? flags.back() - '0' : 1));
        CHECK(got.bytes == row.bytes);
        CHECK(got.alignment == row.alignment);
        end = (end + row.alignment - 1) / row.alignment * row.alignment;
        CHECK(got.offset == end);
        end += row.bytes;
    }
    CHECK(signature.bytes == end);
}

TEST_CASE("a long parameter list is read, as the C++ library would read a short one") {
    const std::vector<Row> rows = known_rows();
    // The C++ library's demangler stops after 1024 characters, so it checks kernels of three parameters each.
    std::string text = types;
    for (std::size_t i = 0; i < std::size(rows); ++i) {
        const std::string next = rows[(i + 1) % std::size(rows)].declared;
        text += fmt::format(
            "__global__ void k{}({} p, {} q, ns::Outer<4>::Inner<ns::Box<const {}, -2 + 5>>* r) {{}}\n", i,
            rows[i].declared, next, rows[i].declared);
    }
    const Image image = compile(text);
    REQUIRE(image.kernels.size() == std::size(rows));
    for (const KernelImage& kernel : image.kernels) {
        REQUIRE(kernel.reflected.size() < 1024);
        const std::string theirs = demangle(kernel.reflected);
        CHECK_FALSE(theirs.empty());
        CHECK(read_mangled(kernel.reflected) == theirs);
    }
}

TEST_CASE("what is no signature is not read") {
    for (const char* name :
         {"", "_Z", "_ZN", "_ZN7bascule", "_ZN7bascule9signatureI", "_ZN7bascule9signatureIS5_EEvv",
          "_ZN7bascule9signatureIPFv99xEEEvv", "_ZN7bascule9signatureIT_EEvv", "main"}) {
        CHECK(read_mangled(name).empty());
    }
    CHECK(read_mangled("_ZN7bascule9signatureI" + std::string(100000, 'P')).empty());
}

TEST_CASE("CCCL's types are known without their inline namespace") {
    const Image image = compile(
        "#include <cuda/std/complex>\n#include <cuda/std/span>\n"
        "__global__ void k(cuda::std::complex<float> a, const cuda::std::complex<double>* b, "
        "cuda::std::span<int> c) {}");
    const std::vector<Parameter>& got = image.kernels.at(0).signature.parameters;
    CHECK(got[0].spelling == "cuda::std::complex<float>");
    CHECK(got[0].type.kind == Kind::scalar);
    CHECK(to_typestr(got[0].type.dtype) == "<c8");
    CHECK(got[0].alignment == 8);
    CHECK(got[1].spelling == "const cuda::std::complex<double>*");
    CHECK(to_typestr(got[1].type.dtype) == "<c16");
    CHECK(got[1].type.alignment == 16);
    CHECK(got[2].spelling.starts_with("cuda::std::span<int"));
    CHECK(got[2].bytes == 16);
}

TEST_CASE("an array of cuda::std is a vector of its numbers") {
    const Image image = compile(
        "#include <cuda/std/array>\nusing cuda::std::array; struct S { int i; };\n"
        "__global__ void k(array<float, 3> a, const array<short, 5>* b, array<array<int, 2>, 2> c, array<S, "
        "2> d, array<int, 0> e) {}");
    const std::vector<Parameter>& got = image.kernels.at(0).signature.parameters;
    CHECK(got[0].spelling == "cuda::std::array<float, 3>");
    CHECK(got[0].type.kind == Kind::vector);
    CHECK(got[0].type.lanes == 3);
    CHECK(got[0].type.alignment == 4);
    CHECK(to_typestr(got[0].type.dtype) == "<f4");
    CHECK(got[1].type.kind == Kind::pointer);
    CHECK(got[1].type.lanes == 5);
    CHECK(got[2].type.kind == Kind::structure);
    CHECK(got[3].type.kind == Kind::structure);
    CHECK(got[4].type.lanes == 0);
}

TEST_CASE("an element's alignment is the one its type asks for") {
    const Image image =
        compile("__global__ void k(double* a, unsigned char* b, bascule::array_view<short, 2> c) {}");
    const std::vector<Parameter>& got = image.kernels.at(0).signature.parameters;
    CHECK(got[0].type.alignment == 8);
    CHECK(got[1].type.alignment == 1);
    CHECK(got[2].type.alignment == 2);
}

TEST_CASE("inline namespaces of CCCL are known by their shape, and other namespaces stay") {
    const auto spelled = [](const char* type) { return spell(parse_type(type)); };
    for (const char* version : {"__4", "_V_300500_SM_800", "_V_300500_SM_800_900_NVHPC",
                                "THRUST_300101_SM_800_NS", "__version_bump_ver4_"}) {
        CAPTURE(std::string(version));
        CHECK(spelled(("thrust::" + std::string(version) + "::complex<double>").c_str()) ==
              "thrust::complex<double>");
        CHECK(spelled(("cuda::std::" + std::string(version) + "::complex<float>").c_str()) ==
              "cuda::std::complex<float>");
    }
    CHECK(spelled("mine::_V_2::Pair<int>") == "mine::_V_2::Pair<int>");
    CHECK(spelled("thrust::detail::pair<int>") == "thrust::detail::pair<int>");
    const Image image = compile(
        "namespace thrust { inline namespace _V_300500_SM_800 {\n"
        "template <class T> struct alignas(2 * sizeof(T)) complex { T re, im; }; } }\n"
        "__global__ void k(thrust::complex<double>* p, thrust::complex<float> v) {}");
    const std::vector<Parameter>& got = image.kernels.at(0).signature.parameters;
    CHECK(to_typestr(got[0].type.dtype) == "<c16");
    CHECK(to_typestr(got[1].type.dtype) == "<c8");
    CHECK(got[1].spelling == "thrust::complex<float>");
}

TEST_CASE("a signature reads as people write it") {
    const Image image = compile("__global__ void saxpy(float a, const float* x, float*) {}");
    CHECK(to_string(image.kernels.at(0).signature) == "void saxpy(float a, const float* x, float* arg3)");
}

TEST_CASE("a kernel without parameters has an empty buffer") {
    const Image image = compile("__global__ void k() {}");
    CHECK(image.kernels.at(0).signature.parameters.empty());
    CHECK(image.kernels.at(0).signature.bytes == 0);
}

TEST_CASE("a name of another form is an error that shows it") {
    const std::string message = message_of<Error>([] { read_signature("_Z3fooi", "k", {}); });
    CHECK(contains(message, "_Z3fooi"));
    CHECK(contains(message, "foo(int)"));
}

}  // namespace
}  // namespace bascule::testing
