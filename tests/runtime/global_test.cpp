#include <functional>
#include <numeric>

#include <doctest/doctest.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/kernels/global.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

constexpr const char* text = R"(
struct Point { float x; int n[3]; };
__constant__ float table[4][8] = {{1, 2, 3}};
__device__ int counter = 41;
__device__ float4 vectors[3];
extern "C" __device__ Point points[5];
template <class T> __device__ T scale = T(3);
namespace deep { __device__ double value = 2.5; }
namespace left { __device__ int same; }
namespace right { __device__ int same; }
__device__ void helper() {}

__global__ void step(float* out) {
    counter += 1;
    deep::value *= 2;
    out[0] = table[1][2] * scale<float>;
    points[1].n[1] = 10;
    vectors[1] = make_float4(5, 6, 7, 8);
}
)";

std::string error_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

/// Reads the whole variable in the order of `stream`.
template <class T>
std::vector<T> read(StreamRef stream, const Global& global) {
    std::vector<T> values(global.variable.bytes() / sizeof(T));
    copy_to_host(stream, values.data(), global.address, global.variable.bytes());
    return values;
}

struct World {
    Device device{0};
    TestModule test{text};
    Kernel step = test.module.kernel("step");
    Stream stream{device};

    Global find(const std::string& name) const { return find_global(step, name, device); }
};

}  // namespace

TEST_CASE("a variable has its type, its extents and what it was initialised with") {
    const World world;
    const Global table = world.find("table");
    CHECK(to_typestr(table.variable.dtype) == "<f4");
    CHECK(to_string(table.view().shape) == "(4, 8)");
    CHECK(table.view().c_contiguous);
    CHECK_FALSE(table.view().readonly);
    const std::vector<float> values = read<float>(world.stream, table);
    CHECK(values.size() == 32);
    CHECK(values[2] == 3);
    CHECK(std::accumulate(values.begin(), values.end(), 0.0f) == 6);
    CHECK(read<int>(world.stream, world.find("counter")) == std::vector<int>{41});
    CHECK(read<double>(world.stream, world.find("deep::value")) == std::vector<double>{2.5});
    CHECK(to_string(world.find("vectors").view().shape) == "(3, 4)");
    CHECK(world.find("points").variable.bytes() == 80);
}

TEST_CASE("a last component is enough where one variable has it") {
    const World world;
    CHECK(world.find("value").address == world.find("deep::value").address);
    CHECK(world.find("::deep::value").address == world.find("deep::value").address);
    const std::string message = error_of([&] { world.find("same"); });
    CHECK(message.find("left::same, right::same") != message.npos);
    CHECK(world.find("left::same").address != world.find("right::same").address);
}

TEST_CASE("a variable that is not there is an error that tells which are") {
    const World world;
    const std::string typo = error_of([&] { world.find("tabel"); });
    CHECK(typo.find("test.cu has no __device__ or __constant__ variable 'tabel'") == 0);
    CHECK(typo.find("Did you mean 'table'?") != typo.npos);
    CHECK(typo.find("deep::value") != typo.npos);
    const std::string function = error_of([&] { world.find("helper"); });
    CHECK(function.find("'helper' of test.cu cannot be read or written as a variable") == 0);
    CHECK(read<double>(world.stream, world.find("scale<double>")) ==
          std::vector<double>{3});  // no kernel uses it
    CHECK(read<float>(world.stream, world.find("scale<float>")) == std::vector<float>{3});
}

TEST_CASE("a variable among the name expressions is the module's, whether a kernel uses it or not") {
    const Device device{0};
    const Module module(TestModule::source_of(text), {}, Cache::process_default(),
                        {"scale<double>", "left::same"});
    CHECK(module.name_expressions() == std::vector<std::string>{"&left::same", "&scale<double>"});
    const Global scale = find_global(module, "scale<double>", device);
    const Stream stream(device);
    CHECK(read<double>(stream, scale) == std::vector<double>{3});
    CHECK(scale.address == find_global(module.kernel("step"), "scale< double >", device).address);
    CHECK(read<int>(stream, find_global(module, "scale<int>", device)) == std::vector<int>{3});
}

}  // namespace bascule::testing
