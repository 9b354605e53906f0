#include <doctest/doctest.h>

#include <bascule/jit/compile/nvrtc_input.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

constexpr const char* views = R"(
__device__ float corner(bascule::array_view<const float, 2> v) { return v(0, 1); }
__global__ void k(bascule::array_view<float, 2> image, bascule::array_view<const float> x, bascule::array_view<float> y) {
    for (auto i : bascule::grid_stride(y.size())) y[i] = x[i] + corner(image) + image.extent(0) + image.stride(1);
    bascule::array_view<const float> same = x;
    if (y.data() != nullptr) y(0) = same[0];
}
__device__ bool both(bascule::masked_view<const float, 2> v) { return v.valid(0, 1u) && v.masked(); }
__global__ void m(bascule::masked_view<float, 2> x, bascule::array_view<float, 0> y, bascule::masked_view<int, 0> z) {
    bascule::array_view<const float, 2> plain = x;
    if (both(x) && z.valid()) y() = plain(1, 0ll) + z();
})";

TEST_CASE("the prelude compiles without a warning, in C++17 and C++20") {
    for (const char* standard : {"c++17", "c++20"}) {
        for (const char* checks : {"0", "1"}) {
            CAPTURE(std::string(standard));
            CAPTURE(std::string(checks));
            Program with_views = program(views);
            with_views.options.std = standard;
            with_views.options.defines.emplace_back("BASCULE_CHECK_BOUNDS", checks);
            CHECK(compiler().compile(with_views).log == "");
        }
    }
}

TEST_CASE("views that check bounds carry 8 bytes more, and are what debugging gets") {
    const auto bytes = [](bool debug, const char* checks) {
        Program with_views = program(
            "__global__ void k(bascule::array_view<float> a, bascule::array_view<float, 0> b,\n"
            "                  bascule::masked_view<const double, 2> c) { a[0] = b() + c(0, 0); }");
        with_views.options.debug = debug;
        if (checks != nullptr) with_views.options.defines.emplace_back("BASCULE_CHECK_BOUNDS", checks);
        const Image image = compiler().compile(with_views);
        std::vector<std::uint32_t> sizes;
        for (const Parameter& parameter : image.kernels.at(0).signature.parameters) {
            sizes.push_back(parameter.bytes);
        }
        return sizes;
    };
    using Sizes = std::vector<std::uint32_t>;
    CHECK(bytes(false, nullptr) == Sizes{24, 24, 72});
    CHECK(bytes(false, "1") == Sizes{32, 32, 80});
    CHECK(bytes(true, nullptr) == Sizes{32, 32, 80});
    CHECK(bytes(true, "0") == Sizes{24, 24, 72});
}

TEST_CASE("macros that people define reach neither into the prelude nor into NVRTC's own headers") {
    Program with_macros = program("__global__ void k(bascule::array_view<float, N> x) { x[0] = N; }");
    for (const char* name : {"N", "T", "I", "D", "M", "K", "F", "U", "i", "d", "index", "step", "count",
                             "BLOCK", "type", "value", "size", "data", "offset"}) {
        with_macros.options.defines.emplace_back(name, "1");
    }
    CHECK(compiler().compile(with_macros).kernels.size() == 1);
}

TEST_CASE("an array_view is a pointer, its extents and its strides") {
    const Image image = compile(R"(
__global__ void k(bascule::array_view<float> a, bascule::array_view<double, 3> b) {}
static_assert(sizeof(bascule::array_view<float>) == 24 && sizeof(bascule::array_view<double, 3>) == 56);
static_assert(__is_trivially_copyable(bascule::array_view<float>) && __is_standard_layout(bascule::array_view<float, 2>));)");
    const Signature& signature = image.kernels.at(0).signature;
    CHECK(signature.parameters[0].bytes == 24);
    CHECK(signature.parameters[1].offset == 24);
    CHECK(signature.bytes == 80);
}

TEST_CASE("a view of const is not turned into one that writes") {
    CHECK(contains(compile_error("__device__ void f(bascule::array_view<float>);\n"
                                 "__global__ void k(bascule::array_view<const float> x) { f(x); }"),
                   "kernels.cu:2: error"));
    CHECK(contains(compile_error("__global__ void k(bascule::array_view<const float> x) { x[0] = 1; }"),
                   "kernels.cu:1: error"));
}

TEST_CASE("too few indices are told in words") {
    CHECK(contains(compile_error("__global__ void k(bascule::array_view<float, 2> x) { x(0) = 1; }"),
                   "one index for each dimension"));
    CHECK(contains(compile_error("__global__ void k(bascule::array_view<float, 2> x) { x[0] = 1; }"),
                   "use operator()(i, j, ...)"));
    CHECK(contains(compile_error("__global__ void k(bascule::masked_view<float, 2> x) { x.valid(0); }"),
                   "masked_view: one index for each dimension"));
    for (const char* text : {"__global__ void k(bascule::array_view<float, 2> x) { x(0) = 1; }",
                             "__global__ void k(bascule::masked_view<float, 2> x) { x.valid(0, 1, 2); }"}) {
        Program checked = program(text);
        checked.options.debug = true;
        CHECK(contains(compile_error(checked), "kernels.cu:1: error"));
    }
}

TEST_CASE("a text that cannot name the views is compiled without them, to the same code") {
    const std::string plain = "__global__ void k(const float* x, float* y) { y[0] = x[0]; }\n";
    const std::string naming = plain + "// bascule\n";
    CHECK(&prelude_for(program(plain)) == &signature_prelude());
    CHECK(&prelude_for(program(naming)) == &whole_prelude());
    CHECK(compile(plain).ptx == compile(naming).ptx);
    CHECK(compile(plain).kernels[0].reflected == compile(naming).kernels[0].reflected);
}

TEST_CASE("the views are there however their namespace is spelled") {
    const std::string kernel = "__global__ void k(NAME::array_view<float> x) { x[0] = 1; }\n";
    for (const char* spelling :
         {"#define NAME bas##cule\n", "%:define NAME bas%:%:cule\n", "#define NAME bas\\\ncule\n",
          "#define NAME bas\\\r\ncule\n", "#define JOIN(a, b) a##b\n#define NAME JOIN(bas, cule)\n"}) {
        CAPTURE(std::string(spelling));
        CHECK(compile(spelling + kernel).kernels.size() == 1);
    }
    Program by_define = program(kernel);
    by_define.options.defines.emplace_back("NAME", "bascule");
    CHECK(compiler().compile(by_define).kernels.size() == 1);

    Program by_header = program("#include \"views.h\"\n__global__ void k(view x) { x[0] = 1; }\n");
    by_header.options.headers.emplace_back("views.h", "using view = bascule::array_view<float>;\n");
    CHECK(compiler().compile(by_header).kernels.size() == 1);

    Program by_argument = program("template <class V> __global__ void k(V x) { x[0] = 1; }\n");
    by_argument.instances = {{"k", "k<bascule::array_view<float>>"}};
    CHECK(compiler().compile(by_argument).kernels.size() == 1);
}

TEST_CASE("the prelude leaves nothing in the image but the kernels") {
    const std::string ptx = compile("__global__ void k(int n) {}").ptx;
    CHECK(contains(ptx, ".entry _Z1ki"));
    CHECK_FALSE(contains(ptx, "bascule"));
    CHECK_FALSE(contains(ptx, ".global"));
}

}  // namespace
}  // namespace bascule::testing
