#include <thread>

#include <doctest/doctest.h>

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
               LaunchConfig config) {
    ArgumentPack args(kernel.signature(stream.device()));
    args.set(0, floats(buffer, stream.handle()));
    args.set(1, real(factor));
    args.set(2, integer(static_cast<std::int64_t>(buffer.bytes() / sizeof(float))));
    kernel.launch(stream, config, args);
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
