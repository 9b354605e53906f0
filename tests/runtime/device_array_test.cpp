#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/kernels/typed_kernel.hpp>
#include <bascule/runtime/memory/device_array.hpp>

#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

namespace {

constexpr const char* text = R"(
__global__ void axpy(float a, const float* x, float* y, int n) {
    for (auto i : bascule::grid_stride(n)) y[i] += a * x[i];
}
__global__ void transpose(bascule::array_view<const double, 2> x, bascule::array_view<double, 2> y) {
    const int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < x.extent(0) && column < x.extent(1)) y(column, row) = x(row, column);
}
struct Pair { int a; float b; };
__global__ void swap_signs(Pair* pairs) { pairs[threadIdx.x].a *= -1; pairs[threadIdx.x].b *= -1; }
)";

template <class Action>
std::string message_of(Action&& action) {
    try {
        action();
    } catch (const ArgumentError& error) {
        return error.what();
    }
    return "no error";
}

}  // namespace

TEST_CASE("values come back from the device as they went there") {
    const Stream stream;
    const std::vector<float> values = counting(1000);
    const auto array = to_device(values, stream);
    CHECK(array.size() == 1000);
    CHECK(array.bytes() == 4000);
    CHECK(array.shape()[0] == 1000);
    CHECK(array.copy_to_host() == values);
    const auto bytes = to_device(std::array<std::uint8_t, 3>{1, 2, 3}, stream);
    CHECK(bytes.copy_to_host() == std::vector<std::uint8_t>{1, 2, 3});
}

TEST_CASE("a typed launch takes arrays where the kernel has pointers, and orders them") {
    const TestModule program(text);
    const Stream stream, other;
    const std::vector<float> values = counting(1000);
    const auto x = to_device(values, stream);
    const auto y = to_device(std::vector<float>(1000, 1), other);
    const auto axpy = program.module.kernel("axpy").typed<void(float, const float*, float*, int)>();
    const OperationTrace trace;
    axpy.forall(stream, 1000, 2, x, y, 1000);
    CHECK(trace.spelled({{stream.ref().handle(), "C"}, {other.ref().handle(), "P"}}) ==
          "R(e1,P) W(e1,C) L(C) R(e1,C) W(e1,P)");
    const std::vector<float> result = y.copy_to_host();
    for (std::size_t i = 0; i < 1000; ++i) CHECK(result[i] == 1 + 2 * values[i]);
}

TEST_CASE("an array of two dimensions goes to a view, and work has two dimensions too") {
    const TestModule program(text);
    const Stream stream;
    const DeviceArray<double> x({3, 5}, stream), y({5, 3}, stream);
    std::vector<double> values(15);
    for (std::size_t i = 0; i < 15; ++i) values[i] = static_cast<double>(i * i);
    x.copy_from_host(values);
    const auto transpose = program.module.kernel("transpose").typed<void(ArrayView, ArrayView)>();
    transpose.forall(stream, {5, 3}, x, y);
    const std::vector<double> result = y.copy_to_host();
    for (std::size_t row = 0; row < 3; ++row) {
        for (std::size_t column = 0; column < 5; ++column)
            CHECK(result[column * 3 + row] == values[row * 5 + column]);
    }
}

TEST_CASE("structures are elements too") {
    struct Pair {
        int a;
        float b;
    };
    const TestModule program(text);
    const Stream stream;
    const auto pairs = to_device(std::vector<Pair>{{1, 2.5F}, {-3, 4}}, stream);
    program.module.kernel("swap_signs").typed<void(Pair*)>()(stream, {.block = {2}}, pairs);
    const std::vector<Pair> result = pairs.copy_to_host();
    CHECK(result[0].a == -1);
    CHECK(result[0].b == -2.5F);
    CHECK(result[1].a == 3);
}

TEST_CASE("no elements need no memory, and are copied") {
    const Stream stream;
    const DeviceArray<float> none({4, 0}, stream);
    CHECK(none.size() == 0);
    CHECK(none.data() == nullptr);
    CHECK(none.copy_to_host().empty());
}

TEST_CASE("a moved array keeps its memory") {
    const Stream stream;
    auto first = to_device(counting(10), stream);
    float* const where = first.data();
    const auto second = std::move(first);
    CHECK(second.data() == where);
    CHECK(second.copy_to_host() == counting(10));
}

TEST_CASE("wrong sizes and shapes say what is wrong") {
    const Stream stream;
    const DeviceArray<float> array(10, stream);
    CHECK(message_of([&] { array.copy_from_host(counting(9)); }) ==
          "the array has 10 elements, and 9 were given: copy exactly as many.");
    CHECK(message_of([&] {
              const DeviceArray<float> wrong({2, -1}, stream);
          }).find("an extent is negative") != std::string::npos);
    CHECK(message_of([&] {
              const DeviceArray<double> wrong({INT64_C(1) << 40, INT64_C(1) << 40}, stream);
          }).find("more than 2**63 bytes") != std::string::npos);
    CHECK(message_of([&] {
              const DeviceArray<float> wrong(std::vector<std::int64_t>(65, 1), stream);
          }).find("at most 64 dimensions") != std::string::npos);
}

TEST_CASE("an array of other elements than the kernel's is refused by the parameter's name") {
    const TestModule program(text);
    const Stream stream;
    const auto x = to_device(std::vector<float>(15), stream);
    const DeviceArray<double> y({5, 3}, stream);
    const auto transpose = program.module.kernel("transpose").typed<void(ArrayView, ArrayView)>();
    CHECK(message_of([&] {
              transpose.forall(stream, {5, 3}, x, y);
          }).find("argument 1 'x'") != std::string::npos);
}
