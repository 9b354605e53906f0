#include <doctest/doctest.h>

#include <bascule/interface/arrays/array_views.hpp>
#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/kernels/global.hpp>
#include <bascule/runtime/kernels/typed_kernel.hpp>

#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

namespace {

constexpr const char* typed_text = R"(
template <class T> __global__ void saxpy(T a, const T* x, T* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
struct Pair { int a; float b; };
__global__ void unpack(Pair p, double* out) { out[0] = p.a; out[1] = p.b; }
__global__ void set(float* p) { *p = 1; }
__global__ void set(double* p) { *p = 2; }
__global__ void view(bascule::array_view<const float> x, float* out) { *out = x[0] + x.size(); }
template <class T, int N> __global__ void fill(T* p) { p[threadIdx.x] = N; }
__device__ int calls = 0;
template <class T> __global__ void count(T*) { ++calls; }
)";

template <class T>
std::vector<T> read(const DeviceBuffer& buffer, const Stream& stream) {
    std::vector<T> values(buffer.bytes() / sizeof(T));
    copy_to_host(stream, values.data(), buffer.address(), buffer.bytes());
    return values;
}

template <class T>
T* pointer(const DeviceBuffer& buffer) {
    return reinterpret_cast<T*>(buffer.address());
}

}  // namespace

TEST_CASE("a typed kernel converts its arguments as C++ does and launches") {
    const TestModule program(typed_text);
    const Stream stream;
    const DeviceBuffer x(100 * sizeof(float)), y(100 * sizeof(float));
    const std::vector<float> start = counting(100);
    copy_to_device(stream, x.address(), start.data(), x.bytes());
    copy_to_device(stream, y.address(), start.data(), y.bytes());
    const auto launch =
        program.module.kernel("saxpy").typed<void(float, const float*, float*, int)>({"float"});
    launch(stream, {.grid = {4}, .block = {32}}, 2, pointer<const float>(x), pointer<float>(y), 100);
    const std::vector<float> result = read<float>(y, stream);
    for (std::size_t i = 0; i < 100; ++i) CHECK(result[i] == 3 * start[i]);
}

TEST_CASE("a number that its parameter cannot hold is refused as in Python, before anything is launched") {
    const TestModule program(typed_text);
    const Stream stream;
    const DeviceBuffer x(4 * sizeof(float)), y(4 * sizeof(float));
    const auto saxpy =
        program.module.kernel("saxpy").typed<void(float, const float*, float*, int)>({"float"});
    const auto launch = [&](auto a, auto n) {
        saxpy(stream, {1, 4}, a, pointer<const float>(x), pointer<float>(y), n);
    };
    launch(2, 4u);
    launch(true, std::uint64_t{4});
    launch(0.1, 'a');
    const auto refused = [&](auto a, auto n, const char* said) {
        CHECK_THROWS_WITH_AS(launch(a, n), doctest::Contains(said), ArgumentError);
    };
    refused(1.0f, 1ll << 40,
            "argument 4 'n': the kernel declares `int`, which holds -2147483648 to 2147483647; got");
    refused(1.0f, ~0ull, "argument 4 'n'");
    refused(1.0f, 3'000'000'000u, "argument 4 'n'");
    refused(1.0f, 2.5, "argument 4 'n': the kernel declares `int`, got");
    refused(1e300, 4, "argument 1 'a': the kernel declares `float`, got");
}

TEST_CASE("the braces of a launch are grid and block, as its two numbers are in Python") {
    const LaunchConfig flat{8, 128};
    CHECK(flat.grid == Dim3(8, 1, 1));
    CHECK(flat.block == Dim3(128, 1, 1));
    const LaunchConfig square{{8, 4}, {16, 2}, 64};
    CHECK(square.grid == Dim3(8, 4));
    CHECK(square.block == Dim3(16, 2));
    CHECK(square.shared_bytes == 64);
    const LaunchConfig named{.grid = 3, .block = {32, 2}};
    CHECK(named.grid.count() * named.block.count() == 192);
}

TEST_CASE("forall over no work launches nothing and checks its arguments") {
    const TestModule program(typed_text);
    const Stream stream;
    const DeviceBuffer x(4 * sizeof(float)), y(4 * sizeof(float));
    const std::vector<float> start = counting(4);
    copy_to_device(stream, y.address(), start.data(), y.bytes());
    const auto saxpy =
        program.module.kernel("saxpy").typed<void(float, const float*, float*, int)>({"float"});
    saxpy.forall(stream, 0, 2, pointer<const float>(x), pointer<float>(y), 4);
    saxpy.forall(stream, {4, 0}, 2, pointer<const float>(x), pointer<float>(y), 4);
    CHECK(read<float>(y, stream) == start);
    CHECK_THROWS_AS(saxpy.forall(stream, 0, 2, pointer<const float>(x), pointer<float>(y), 2.5),
                    ArgumentError);
}

TEST_CASE("an extent is not cut: a grid of 2^32 + 1 blocks is refused, and so is one of -1") {
    const TestModule program(typed_text);
    const Stream stream;
    const DeviceBuffer p(8);
    const auto launch = program.module.kernel("set").typed<void(float*)>();
    for (const long long blocks : {(1ll << 32) + 1, 1ll << 40, -1ll}) {
        CHECK_THROWS_WITH_AS((launch(stream, {blocks, 1}, pointer<float>(p))), doctest::Contains("`grid"),
                             ArgumentError);
        CHECK_THROWS_WITH_AS((launch(stream, {.grid = 1, .block = {1, blocks}}, pointer<float>(p))),
                             doctest::Contains("`block"), ArgumentError);
    }
    const auto said = [&](const LaunchConfig& config, const char* words) {
        CHECK_THROWS_WITH_AS(launch(stream, config, pointer<float>(p)), doctest::Contains(words),
                             ArgumentError);
    };
    said({-1, 1}, "`grid` has -1, which is below 0.");
    said({{1, 1ll << 40}, 1}, "`grid` has 1099511627776, which is above the limit of every device.");
    said({1, 1, ~0ull}, "`shared_bytes` has 9223372036854775807, which is above the limit of every device.");
    const std::size_t g = 1, n = 16;
    const LaunchConfig sizes{{g, g}, {16, 2}, n * 4};  // no warning about narrowing
    CHECK(sizes.shared_bytes == 64);
    launch(stream, sizes, pointer<float>(p));
    said({{g, g}, {16, 2}, n << 40}, "`shared_bytes` has 17592186044416");
    static_assert(Dim3(std::size_t{7}, 2).x == 7);
    static_assert(!std::is_convertible_v<double, Dim3>);
}

TEST_CASE("template arguments that are left out follow from the signature") {
    const TestModule program(typed_text);
    const auto launch = program.module.kernel("saxpy").typed<void(double, const double*, double*, int)>();
    CHECK(to_string(launch.kernel().signature()) ==
          "void saxpy<double>(double a, const double* x, double* y, int n)");
    CHECK(program.module.kernel("fill").typed<void(int*)>({"int", "7"}).kernel().expression() ==
          "fill<int, 7>");
}

TEST_CASE("an overload is the one with the signature") {
    const TestModule program(typed_text);
    const Stream stream;
    const DeviceBuffer p(8);
    program.module.kernel("set").typed<void(double*)>()(stream, {}, pointer<double>(p));
    CHECK(read<double>(p, stream)[0] == 2);
    program.module.kernel("set").typed<void(float*)>()(stream, {}, pointer<float>(p));
    CHECK(read<float>(p, stream)[0] == 1);
}

TEST_CASE("a structure goes by value, byte by byte, and an array goes to a view") {
    struct Pair {
        int a;
        float b;
    };
    const TestModule program(typed_text);
    const Stream stream;
    const DeviceBuffer out(2 * sizeof(double)), x(4 * sizeof(float)), sum(sizeof(float));
    program.module.kernel("unpack").typed<void(Pair, double*)>()(stream, {}, Pair{3, 0.5f},
                                                                 pointer<double>(out));
    CHECK(read<double>(out, stream) == std::vector<double>{3, 0.5});
    const std::vector<float> start = {5, 6, 7, 8};
    copy_to_device(stream, x.address(), start.data(), x.bytes());
    program.module.kernel("view").typed<void(ArrayView, float*)>()(stream, {}, floats(x),
                                                                   pointer<float>(sum));
    CHECK(read<float>(sum, stream)[0] == 9);
}

TEST_CASE("an array in Fortran order is refused for a raw pointer") {
    const TestModule program(typed_text);
    const Stream stream;
    const DeviceBuffer x(4 * sizeof(float)), y(4 * sizeof(float));
    const std::int64_t square[] = {2, 2};
    const ArrayView transposed = transpose(reshape(floats(x), Dimensions(square)));
    const auto saxpy = program.module.kernel("saxpy").typed<void(float, ArrayView, float*, int)>({"float"});
    CHECK_THROWS_WITH_AS((saxpy(stream, {}, 1.0f, transposed, pointer<float>(y), 4)),
                         doctest::Contains("argument 2 'x': the kernel declares `const float*`, got a "
                                           "float32 array of shape (2, 2) with strides (4, 8). A raw "
                                           "pointer"),
                         ArgumentError);
}

TEST_CASE("a signature that is not the kernel's is refused, with both types, before anything is launched") {
    const TestModule program(typed_text);
    const Kernel saxpy = program.module.kernel("saxpy");
    CHECK_THROWS_WITH_AS((saxpy.typed<void(float, const double*, float*, int)>({"float"})),
                         doctest::Contains("argument 2 'x': the kernel declares `const float*`, and "
                                           "typed<...> says const double*"),
                         ArgumentError);
    CHECK_THROWS_WITH_AS((saxpy.typed<void(float, const float*, const float*, int)>({"float"})),
                         doctest::Contains("argument 3 'y': the kernel declares `float*`"), ArgumentError);
    CHECK_THROWS_WITH_AS((saxpy.typed<void(float, const float*, float*, long)>({"float"})),
                         doctest::Contains("argument 4 'n': the kernel declares `int`"), ArgumentError);
    CHECK_THROWS_WITH_AS((saxpy.typed<void(float, const float*)>({"float"})),
                         doctest::Contains("takes 4 arguments"), ArgumentError);
    CHECK_THROWS_WITH_AS((saxpy.typed<void(float, const float*, double*, int)>()),
                         doctest::Contains("disagree on T"), ArgumentError);
}

TEST_CASE("all instances have the same variables") {
    const TestModule program(typed_text);
    const Stream stream;
    const DeviceBuffer p(8);
    const auto of_float = program.module.kernel("count").typed<void(float*)>();
    const auto of_double = program.module.kernel("count").typed<void(double*)>();
    for (int i = 0; i < 3; ++i) of_float(stream, {}, pointer<float>(p));
    of_double(stream, {}, pointer<double>(p));
    stream.ref().synchronize();
    const auto count = [&](const Kernel& kernel) {
        int value = 0;
        copy_to_host(stream, &value, find_global(kernel, "calls").address, sizeof value);
        return value;
    };
    CHECK(count(of_float.kernel()) == 4);
    CHECK(count(of_double.kernel()) == 4);
}
