#include <thread>

#include <doctest/doctest.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/kernels/launch.hpp>

#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

namespace {

constexpr const char* scale_text = R"(
__global__ void scale(float* p, float f, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] *= f;
}
)";

void run_scale(const Kernel& kernel, StreamRef stream, const DeviceBuffer& buffer, double factor,
               LaunchConfig config, const Owners& owners = {}) {
    ArgumentPack args(kernel.signature(stream.device()));
    args.set(0, floats(buffer, stream.handle()));
    args.set(1, real(factor));
    args.set(2, integer(static_cast<std::int64_t>(buffer.bytes() / sizeof(float))));
    kernel.launch(stream, config, args, owners);
}

}  // namespace

TEST_CASE("a launch computes what plain C++ computes, for every size") {
    const TestModule program(scale_text);
    const Kernel kernel = program.module.kernel("scale");
    const Stream stream;
    for (const std::size_t n : {1U, 31U, 32U, 33U, 100003U}) {
        std::vector<float> expected = counting(n);
        const DeviceBuffer buffer = on_device(stream, expected);
        const std::uint64_t work = n;
        run_scale(kernel, stream, buffer, 2.5, kernel.configuration_for(Device(0), {&work, 1}));
        for (float& value : expected) value *= 2.5F;
        CHECK(on_host(stream, buffer) == expected);
    }
}

TEST_CASE("dynamic shared memory reaches the kernel") {
    const TestModule program(
        "__global__ void reverse(float* p) { extern __shared__ float tile[];  tile[threadIdx.x] = "
        "p[threadIdx.x]; __syncthreads(); p[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x]; }");
    const Kernel kernel = program.module.kernel("reverse");
    const Stream stream;
    const DeviceBuffer buffer = on_device(stream, counting(128));
    ArgumentPack args(kernel.signature());
    args.set(0, floats(buffer));
    kernel.launch(stream, {.grid = {1}, .block = {128}, .shared_bytes = 512}, args);
    const std::vector<float> reversed = on_host(stream, buffer);
    for (std::size_t i = 0; i < 128; ++i) REQUIRE(reversed[i] == static_cast<float>(127 - i));
}

TEST_CASE("blocks and grids of several dimensions number their threads as CUDA does") {
    const TestModule program(
        "__global__ void number(float* p) {  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * "
        "blockDim.y + threadIdx.y,      z = blockIdx.z * blockDim.z + threadIdx.z;  int width = gridDim.x * "
        "blockDim.x, height = gridDim.y * blockDim.y;  p[(z * height + y) * width + x] = x + 100 * y + 10000 "
        "* z; }");
    const Kernel kernel = program.module.kernel("number");
    const Stream stream;
    const DeviceBuffer buffer(8 * 6 * 4 * sizeof(float));
    ArgumentPack args(kernel.signature());
    args.set(0, floats(buffer));
    kernel.launch(stream, {.grid = {2, 3, 2}, .block = {4, 2, 2}}, args);
    const std::vector<float> got = on_host(stream, buffer);
    for (int z = 0; z < 4; ++z) {
        for (int y = 0; y < 6; ++y) {
            for (int x = 0; x < 8; ++x) {
                REQUIRE(got[static_cast<std::size_t>((z * 6 + y) * 8 + x)] ==
                        static_cast<float>(x + 100 * y + 10000 * z));
            }
        }
    }
}

TEST_CASE("geometry beyond the limits is refused with the limit in the message") {
    const TestModule program(scale_text);
    const Kernel kernel = program.module.kernel("scale");
    const Stream stream;
    const DeviceBuffer buffer(1024);
    const auto launch = [&](LaunchConfig config) { run_scale(kernel, stream, buffer, 1, config); };
    CHECK_THROWS_WITH_AS(launch({.grid = {1}, .block = {1025}}), doctest::Contains("1024"), ArgumentError);
    CHECK_THROWS_WITH_AS(launch({.grid = {1, 70000}, .block = {1}}), doctest::Contains("65535"),
                         ArgumentError);
    CHECK_THROWS_WITH_AS(launch({.grid = {0}, .block = {1}}), doctest::Contains("grid"), ArgumentError);
    CHECK_THROWS_WITH_AS(launch({.grid = {1}, .block = {1}, .shared_bytes = 1 << 20}),
                         doctest::Contains("shared_bytes"), ArgumentError);
}

TEST_CASE("the owners of a launch are kept until it is done, also when it is refused") {
    synchronize();
    const TestModule program(scale_text);
    const Kernel kernel = program.module.kernel("scale");
    const Stream stream;
    const DeviceBuffer buffer(1024);
    int released = 0;
    const Owner owner{&released, &count_releases<int>};
    run_scale(kernel, stream, buffer, 1, {.grid = {1}, .block = {256}}, owner);
    CHECK(released == 0);
    CHECK_THROWS_AS(run_scale(kernel, stream, buffer, 1, {.grid = {0}, .block = {256}}, owner),
                    ArgumentError);
    stream.ref().synchronize();
    CHECK(released == 2);
}

TEST_CASE("two threads compile, load and launch one kernel at once") {
    const TestModule program("__global__ void both_threads(float* p, float f) { p[threadIdx.x] += f; }");
    const Kernel kernel = program.module.kernel("both_threads");
    constexpr int rounds = 200;
    std::vector<float> results[2];
    const auto work = [&](std::vector<float>& result) {
        const Stream stream(Device(0));
        const DeviceBuffer buffer = on_device(stream, counting(64));
        for (int i = 0; i < rounds; ++i) {
            ArgumentPack args(kernel.signature(Device(0)));
            args.set(0, floats(buffer, stream.ref().handle()));
            args.set(1, integer(1));
            kernel.launch(stream, {.grid = {1}, .block = {64}}, args);
        }
        result = on_host(stream, buffer);
    };
    std::thread first(work, std::ref(results[0]));
    std::thread second(work, std::ref(results[1]));
    first.join();
    second.join();
    for (const std::vector<float>& result : results) {
        REQUIRE(result.size() == 64);
        for (std::size_t i = 0; i < 64; ++i) REQUIRE(result[i] == static_cast<float>(i + rounds));
    }
}
