#include <doctest/doctest.h>

#include <bascule/jit/templates/specialization.hpp>

#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

namespace {

using Kind = ArgumentType::Kind;

ArgumentType array(const char* typestr, int rank = 1, bool readonly = false) {
    return {Kind::array, parse_typestr(typestr), rank, readonly};
}
ArgumentType numpy(const char* typestr) { return {Kind::strong_scalar, parse_typestr(typestr), 0, false}; }
const ArgumentType an_int{Kind::weak_scalar, {DType::Kind::signed_integer, 4}, 0, false};
const ArgumentType a_float{Kind::weak_scalar, {DType::Kind::floating, 8}, 0, false};
const ArgumentType a_bool{Kind::weak_scalar, {DType::Kind::boolean, 1}, 0, false};
const ArgumentType a_complex{Kind::weak_scalar, {DType::Kind::complex, 16}, 0, false};
const ArgumentType nothing{};

/// The instance, or the error.
std::string instance(const std::string& text, const std::vector<ArgumentType>& arguments,
                     const TemplateArguments& given = {}) {
    const std::vector<KernelDeclaration> found = find_kernels(text);
    REQUIRE(found.size() == 1);
    const KernelDeclaration& kernel = found.front();
    const std::vector<TypePattern> patterns =
        read_patterns(kernel.parameter_types, kernel.template_parameters);
    try {
        const Deduction deduction = deduce(kernel, patterns, arguments, place_explicit(kernel, given));
        if (!deduction.complete()) return missing_argument(kernel, patterns, arguments, deduction).what();
        return instance_name(kernel, deduction);
    } catch (const ArgumentError& error) {
        return error.what();
    }
}

struct InstanceRow {
    const char* claim;
    const char* text;
    std::vector<ArgumentType> arguments;
    TemplateArguments given;
    const char* expected;
};

}  // namespace

TEST_CASE(
    "an instance follows from what was said, the arrays, NumPy scalars, Python numbers and defaults, in that "
    "order") {
    const std::vector<InstanceRow> rows = {
        {"a pointer's elements",
         "template <class T> __global__ void k(T* p) {}",
         {array("<f4")},
         {},
         "k<float>"},
        {"const elements",
         "template <class T> __global__ void k(const T* p) {}",
         {array("<i8")},
         {},
         "k<long long>"},
        {"const behind",
         "template <class T> __global__ void k(T const* __restrict__ p) {}",
         {array("|u1")},
         {},
         "k<unsigned char>"},
        {"an auto behind a concept",
         "template <class T> concept C = true; __global__ void k(C auto* p, n::D<int> auto q) {}",
         {array("|u1"), array("<f4")},
         {},
         "k<unsigned char, float*>"},
        {"const elements where the array is read-only",
         "template <class T, class U> __global__ void k(T* p, bascule::array_view<U> q) {}",
         {array("<i4", 1, true), array("<f4", 1, true)},
         {},
         "k<const int, const float>"},
        {"const once",
         "template <class T, class U> __global__ void k(T const* p, bascule::array_view<const U, 1> q) {}",
         {array("<i4", 1, true), array("<f4", 1, true)},
         {},
         "k<int, float>"},
        {"bfloat16 as opaque bytes",
         "template <class T> __global__ void k(T* p) {}",
         {array("<V2")},
         {},
         "k<__nv_bfloat16>"},
        {"half", "template <class T> __global__ void k(T* p) {}", {array("<f2")}, {}, "k<__half>"},
        {"complex",
         "template <class T> __global__ void k(T* p) {}",
         {array("<c8")},
         {},
         "k<cuda::std::complex<float>>"},
        {"a view",
         "template <class T> __global__ void k(bascule::array_view<const T> p) {}",
         {array("<f8")},
         {},
         "k<double>"},
        {"a view's rank",
         "template <class T, int N> __global__ void k(bascule::array_view<T, N> p) {}",
         {array("<f8", 3)},
         {},
         "k<double, 3>"},
        {"a rank with fixed elements",
         "template <int N> __global__ void k(bascule::array_view<float, N> p) {}",
         {array("<f4", 2)},
         {},
         "k<2>"},
        {"a view without its namespace",
         "using namespace bascule; template <class T> __global__ void k(array_view<T> p) {}",
         {array("<f4")},
         {},
         "k<float>"},
        {"arrays before Python's numbers",
         "template <class T> __global__ void k(T a, T* p) {}",
         {a_float, array("<f4")},
         {},
         "k<float>"},
        {"arrays before NumPy's scalars",
         "template <class T> __global__ void k(T a, T* p) {}",
         {numpy("<f8"), array("<f4")},
         {},
         "k<float>"},
        {"NumPy's scalars before Python's",
         "template <class T> __global__ void k(T a, T b) {}",
         {a_float, numpy("<f4")},
         {},
         "k<float>"},
        {"an int", "template <class T> __global__ void k(T a) {}", {an_int}, {}, "k<int>"},
        {"a float", "template <class T> __global__ void k(T a) {}", {a_float}, {}, "k<double>"},
        {"a bool", "template <class T> __global__ void k(T a) {}", {a_bool}, {}, "k<bool>"},
        {"Python's numbers join",
         "template <class T> __global__ void k(T a, T b, T c) {}",
         {a_bool, a_float, an_int},
         {},
         "k<double>"},
        {"complex joins all",
         "template <class T> __global__ void k(T a, T b) {}",
         {a_float, a_complex},
         {},
         "k<cuda::std::complex<double>>"},
        {"two parameters",
         "template <class T, class U> __global__ void k(T* p, U n) {}",
         {array("<f4"), an_int},
         {},
         "k<float, int>"},
        {"a default stays the compiler's",
         "template <class T, int B = 128> __global__ void k(T* p) {}",
         {array("<f4")},
         {},
         "k<float>"},
        {"a default in the middle is written out",
         "template <class T = double, int B> __global__ void k(int n) {}",
         {an_int},
         {{}, {{"B", "4"}}},
         "k<double, 4>"},
        {"a default that mentions a name of another scope",
         "struct Q { using T = float; }; template <class T, class U = Q::T, int N> __global__ void k(T* p, "
         "bascule::array_view<int, N> q) {}",
         {array("<i4"), array("<i4", 2)},
         {},
         "k<int, Q::T, 2>"},
        {"a default that mentions another parameter",
         "template <class T, class U = Pair<T>, int B> __global__ void k(T* p) {}",
         {array("<f4")},
         {{}, {{"B", "4"}}},
         "k<float, Pair<float>, 4>"},
        {"arguments before defaults",
         "template <class T = double> __global__ void k(T* p) {}",
         {array("<f4")},
         {},
         "k<float>"},
        {"by position",
         "template <class T, int B> __global__ void k(T* p) {}",
         {array("<f4")},
         {{"float", "256"}, {}},
         "k<float, 256>"},
        {"the rest from the arguments",
         "template <int B, class T> __global__ void k(T* p) {}",
         {array("<f4")},
         {{"256"}, {}},
         "k<256, float>"},
        {"by name",
         "template <class T, int B> __global__ void k(T* p) {}",
         {array("<f4")},
         {{}, {{"B", "64"}}},
         "k<float, 64>"},
        {"said before arrays",
         "template <class T> __global__ void k(T* p) {}",
         {array("<f4")},
         {{"double"}, {}},
         "k<double>"},
        {"a pack",
         "template <class... T> __global__ void k(int n, T... v) {}",
         {an_int, a_float, an_int, numpy("<f4")},
         {},
         "k<double, int, float>"},
        {"a pack of pointers",
         "template <class... T> __global__ void k(T*... v) {}",
         {array("<f8"), array("<i4")},
         {},
         "k<double, int>"},
        {"an empty pack", "template <class... T> __global__ void k(int n, T... v) {}", {an_int}, {}, "k<>"},
        {"an explicit pack",
         "template <class... T> __global__ void k(T... v) {}",
         {an_int, an_int},
         {{"float", "float"}, {}},
         "k<float, float>"},
        {"an abbreviated template",
         "__global__ void k(auto* p, auto n) {}",
         {array("<f4"), an_int},
         {},
         "k<float, int>"},
        {"a constraint",
         "template <std::integral T> __global__ void k(T* p) {}",
         {array("<i4")},
         {},
         "k<int>"},
        {"a requires clause",
         "template <class T> requires (sizeof(T) == 4) __global__ void k(T* p) {}",
         {array("<i4")},
         {},
         "k<int>"},
        {"in a namespace",
         "namespace a::b { template <class T> __global__ void k(T* p) {} }",
         {array("<i4")},
         {},
         "a::b::k<int>"},
        {"an array by value is a pointer, as in C++",
         "template <class T> __global__ void k(T p) {}",
         {array("<f4", 1, true)},
         {},
         "k<const float*>"},
        {"null says nothing, the other array does",
         "template <class T> __global__ void k(T* p, T* q) {}",
         {nothing, array("<f4")},
         {},
         "k<float>"},
        {"what is left over",
         "template <class T, int B> __global__ void k(T* p) {}",
         {array("<f4")},
         {},
         "the template parameter B of kernel 'k' cannot be deduced from the arguments. Give it: "
         "module.kernel(\"k<...>\")."},
        {"why an argument does not say it",
         "template <class T> __global__ void k(T* p) {}",
         {nothing},
         {},
         "the template parameter T of kernel 'k' cannot be deduced from the arguments. Argument 1 'p' is an "
         "argument without a type, which does not determine it. Give it: module.kernel(\"k<...>\")."},
        {"two arrays",
         "template <class T> __global__ void k(T a, const T* x, T* y) {}",
         {an_int, array("<f4"), array("<f8")},
         {},
         "arguments 2 'x' and 3 'y' of kernel 'k' disagree on T: 'x' is a float32 array (T = float), 'y' is "
         "a float64 array (T = double). Convert one of them, or give them template parameters of their own."},
        {"two ranks",
         "template <int N> __global__ void k(bascule::array_view<int, N> x, bascule::array_view<int, N> y) "
         "{}",
         {array("<i4", 1), array("<i4", 2)},
         {},
         "arguments 1 'x' and 2 'y' of kernel 'k' disagree on N: 'x' is an int32 array of 1 dimensions (N = "
         "1), 'y' is an int32 array of 2 dimensions (N = 2). Reshape one of them, or give them template "
         "parameters of their own."},
        {"too many",
         "template <class T> __global__ void k(T* p) {}",
         {array("<f4")},
         {{"float", "3"}, {}},
         "kernel 'k' has 1 template parameter (T), got 2 template arguments."},
        {"an unknown name",
         "template <class T> __global__ void k(T* p) {}",
         {array("<f4")},
         {{}, {{"U", "int"}}},
         "kernel 'k' has no template parameter 'U'; it has: T."},
        {"twice",
         "template <class T> __global__ void k(T* p) {}",
         {array("<f4")},
         {{"int"}, {{"T", "int"}}},
         "the template argument 'T' of kernel 'k' is given twice."},
    };
    for (const InstanceRow& row : rows) {
        CAPTURE(std::string(row.claim));
        CHECK(instance(row.text, row.arguments, row.given) == std::string(row.expected));
    }
}

TEST_CASE("a template header is read as the compiler would") {
    struct Header {
        const char* text;
        const char* name;
        TemplateParameter::Kind kind;
        bool is_pack;
        const char* default_argument;
    };
    using K = TemplateParameter::Kind;
    const std::vector<Header> rows = {
        {"class T", "T", K::type, false, ""},
        {"typename T = float", "T", K::type, false, "float"},
        {"class", "", K::type, false, ""},
        {"typename... Ts", "Ts", K::type, true, ""},
        {"int N = 1 + 2", "N", K::value, false, "1+2"},
        {"unsigned int N", "N", K::value, false, ""},
        {"unsigned", "", K::value, false, ""},
        {"bool... flags", "flags", K::value, true, ""},
        {"typename S::size_type N", "N", K::value, false, ""},
        {"template <class, int> class C", "C", K::template_, false, ""},
        {"class T = Map<int, Pair<float, 2>>", "T", K::type, false, "Map<int, Pair<float, 2>>"},
        {"std::integral T", "T", K::type_or_value, false, ""},
        {"auto V", "V", K::value, false, ""},
    };
    for (const Header& row : rows) {
        CAPTURE(std::string(row.text));
        const auto kernels = find_kernels("template <" + std::string(row.text) + "> __global__ void k() {}");
        REQUIRE(kernels.size() == 1);
        REQUIRE(kernels[0].template_parameters.size() == 1);
        const TemplateParameter& parameter = kernels[0].template_parameters[0];
        CHECK(parameter.name == std::string(row.name));
        CHECK(parameter.kind == row.kind);
        CHECK(parameter.is_pack == row.is_pack);
        CHECK(parameter.default_argument == std::string(row.default_argument));
    }
}

TEST_CASE("a parameter's type is kept as written, without its name and default") {
    const auto kernels =
        find_kernels("__global__ void k(const float* __restrict__ x, unsigned int n = 3, A<B, 2> a, int);");
    REQUIRE(kernels.size() == 1);
    CHECK(kernels[0].parameter_types ==
          std::vector<std::string>{"const float* __restrict__", "unsigned int", "A<B, 2>", "int"});
}

TEST_CASE("markers are types of ours, and numbers that the text does not have, far from each other") {
    const auto header = find_kernels("template <class T, int N, unsigned M> __global__ void k(T* p) {}")
                            .front()
                            .template_parameters;
    CHECK(markers_for(header, "") == std::vector<std::string>{"bascule::marker<0>", "7919", "8928"});
    CHECK(markers_for(header, "Tile<7919> a; int b[8928u]; 79190") ==
          std::vector<std::string>{"bascule::marker<0>", "9937", "10946"});
}

TEST_CASE("in a type that the compiler spells, a marker is a whole number or a whole name") {
    using K = TypePattern::Kind;
    const std::vector<std::string> markers = {"bascule::marker<0>", "7919", "8928u"};
    struct Spelled {
        const char* type;
        TypePattern pattern;
    };
    const std::vector<Spelled> rows = {
        {"bascule::marker<0>*", {K::pointer, 0, -1, false}},
        {"const bascule::marker<0>", {K::value, 0, -1, false}},
        {"bascule::array_view<const bascule::marker<0>, 7919>", {K::view, 0, 1, false, true}},
        {"bascule::array_view<float, 8928ul>", {K::view, -1, 2, false}},
        {"Tile<7919>", {K::unclear, -1, -1, false}},
        {"bascule::array_view<float, 17919>", {}},
        {"bascule::array_view<float, 79190>", {}},
        {"bascule::array_view<float, 7920>", {}},
        {"Tile<17919>", {}},
        {"Tile<x7919>", {}},
        {"my::bascule::marker<0>*", {}},
        {"mybascule::marker<0>*", {}},
        {"bascule::marker<01>*", {}},
    };
    for (const Spelled& row : rows) {
        CAPTURE(std::string(row.type));
        const std::vector<std::string> types = {row.type};
        CHECK(read_marked_patterns(types, markers) == std::vector<TypePattern>{row.pattern});
    }
}
