#include <functional>
#include <numeric>

#include <doctest/doctest.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/driver/home_device.hpp>
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
__device__ float* where;
__device__ const int fixed = 7;
namespace nameless { __constant__ struct { float a, b; int n; } settings; }
template <class T> __device__ T scale = T(3);
namespace deep { __device__ double value = 2.5; static __device__ short hidden = 3; }
namespace left { __device__ int same; }
namespace right { __device__ int same; }
__device__ void helper() {}

__global__ void step(float* out) {
    counter += 1;
    deep::value *= 2;
    deep::hidden = static_cast<short>(deep::hidden + 1);
    out[0] = table[1][2] + nameless::settings.b * nameless::settings.n;
    for (int i = 0; i < 5; ++i) points[i].n[1] = 10 * i;
    if (where) *where = fixed * scale<float> / 3;
    vectors[1] = make_float4(5, 6, 7, 8);
}
__global__ void second(int* out) { *out = counter; }
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
    DeviceBuffer out = on_device(stream, {-1});

    void run() {
        ArgumentPack arguments(step.signature(device));
        arguments.set(0, floats(out));
        step.launch(stream, {}, arguments);
    }
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

TEST_CASE("kernels and copies of one stream see a variable in the order of the stream") {
    World world;
    const Global table = world.find("table");
    const Global counter = world.find("counter");
    // Nothing waits in between: each kernel sees what was written before it, and not what was written after.
    std::vector<float> values(32, 0);
    std::vector<float> seen;
    for (int round = 1; round <= 3; ++round) {
        values[10] = static_cast<float>(round);
        copy_to_device(world.stream, table.address, values.data(), table.variable.bytes());
        values[10] = -1;  // the copy has taken it already
        world.run();
        seen.push_back(on_host(world.stream, world.out)[0]);
    }
    CHECK(seen == std::vector<float>{1, 2, 3});
    CHECK(read<int>(world.stream, counter) == std::vector<int>{44});
    CHECK(read<double>(world.stream, world.find("deep::value")) == std::vector<double>{20});
    CHECK(read<short>(world.stream, world.find("deep::hidden")) == std::vector<short>{6});
    CHECK(read<float>(world.stream, world.find("vectors")) ==
          std::vector<float>{0, 0, 0, 0, 5, 6, 7, 8, 0, 0, 0, 0});
    struct Point {
        float x;
        int n[3];
    };
    const std::vector<Point> points = read<Point>(world.stream, world.find("points"));
    CHECK(points[3].n[1] == 30);
    CHECK(points[3].n[0] == 0);
}

TEST_CASE("a variable whose type has no name is its bytes") {
    World world;
    const Global settings = world.find("settings");
    CHECK(settings.variable.name == "nameless::settings");
    CHECK(to_typestr(settings.variable.dtype) == "|V12");
    CHECK(settings.variable.bytes() == 12);
    const struct {
        float a, b;
        int n;
    } values = {1, 2.5, 4};
    copy_to_device(world.stream, settings.address, &values, sizeof values);
    world.run();
    CHECK(on_host(world.stream, world.out)[0] == 10);
}

TEST_CASE("a pointer is written as the number that it is") {
    World world;
    const DeviceBuffer target = on_device(world.stream, {-1, -1});
    const std::uint64_t address = target.address() + 4;
    const Global where = world.find("where");
    CHECK(to_typestr(where.variable.dtype) == "<u8");
    copy_to_device(world.stream, where.address, &address, sizeof address);
    world.run();
    CHECK(on_host(world.stream, target) == std::vector<float>{-1, 7});
    const std::uint64_t null = 0;
    copy_to_device(world.stream, where.address, &null, sizeof null);
}

TEST_CASE("a kernel takes a variable as an array, and writes through it") {
    World world;
    const Global vectors = world.find("vectors");
    ArgumentPack arguments(world.step.signature(world.device));
    arguments.set(0, resolve(vectors.view(), world.device));
    world.step.launch(world.stream, {}, arguments);
    CHECK(read<float>(world.stream, vectors)[0] == 0);  // table[1][2]
    CHECK(read<float>(world.stream, vectors)[4] == 5);
}

TEST_CASE("the kernels of one text share their variables, and two modules do not") {
    World world;
    const Kernel second = world.test.module.kernel("second");
    CHECK(find_global(second, "counter", world.device).address == world.find("counter").address);
    CHECK(find_global(world.test.module, "counter", world.device).address == world.find("counter").address);
    const TestModule other(text);
    CHECK(find_global(other.module, "counter", world.device).address != world.find("counter").address);
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
    const std::string unused = error_of([&] { world.find("scale<double>"); });
    CHECK(unused.find("kernel 'step' does not use it") != unused.npos);
    CHECK(read<float>(world.stream, world.find("scale<float>")) == std::vector<float>{3});
}

TEST_CASE("a module with templates asks whose variable is meant") {
    const TestModule test(
        "__device__ int v; template <class T> __global__ void k(T*) { v = 1; } __global__ void plain() { v = "
        "2; }");
    const std::string message = error_of([&] { find_global(test.module, "v", Device(0)); });
    CHECK(message.find("template 'k'") != message.npos);
    CHECK(message.find("kernel.get_global(\"v\")") != message.npos);
    CHECK(find_global(test.module.kernel("plain"), "v", Device(0)).variable.bytes() == 4);
}

}  // namespace bascule::testing
