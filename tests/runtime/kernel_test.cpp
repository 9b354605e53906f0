#include <array>

#include <doctest/doctest.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/kernels/kernel.hpp>
#include <bascule/runtime/kernels/library.hpp>

#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

namespace {

constexpr const char* three = R"(
__global__ void scale(float* p, float f, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] *= f;
}
namespace left { __global__ void shift(int* p) { p[0] = 1; } }
namespace right { __global__ void shift(int* p) { p[0] = 2; } }
)";

std::string message_of(const Module& module, const std::string& name) {
    try {
        module.kernel(name);
    } catch (const CompileError& error) {
        return error.what();
    }
    return "no error";
}

}  // namespace

TEST_CASE("a kernel is found by its qualified name, and by its last component where that is enough") {
    const TestModule program(three);
    CHECK(program.module.kernel("scale").name() == "scale");
    CHECK(program.module.kernel("::scale").name() == "scale");
    CHECK(program.module.kernel("left::shift").name() == "left::shift");
    const std::string ambiguous = message_of(program.module, "shift");
    CHECK(ambiguous.find("left::shift, right::shift") != std::string::npos);
}

TEST_CASE("copies of a kernel share what was loaded, and a second lookup costs no driver call") {
    const TestModule program(three);
    const Device device(0);
    const Kernel first = program.module.kernel("scale");
    const Kernel second = program.module.kernel("scale");
    const LoadedKernel* loaded = &first.loaded(device);
    CHECK(&second.loaded(device) == loaded);
    CHECK(calls_of("cuLibraryGetKernel", [&] { first.loaded(device); }) == 0);
    CHECK(calls_of("cuLibraryLoadData", [&] { program.module.kernel("left::shift").loaded(device); }) == 0);
}

TEST_CASE("a kernel outlives the module object that it came from") {
    std::optional<Kernel> kernel;
    {
        const TestModule program(three);
        kernel = program.module.kernel("scale");
    }
    CHECK(kernel->signature().parameters.size() == 3);
    CHECK(kernel->module().source().name == "test.cu");
}

TEST_CASE("the module tells where its code came from once it is loaded") {
    const TestModule program("__global__ void only_here(int* p) { p[0] = 42; }");
    const Device device(0);
    CHECK_FALSE(program.module.kernel("only_here").provenance(device).has_value());
    CHECK(program.module.kernel("only_here").compiled(device.arch()) == nullptr);
    program.module.kernel("only_here").loaded(device);
    REQUIRE(program.module.kernel("only_here").provenance(device).has_value());
    CHECK(program.module.kernel("only_here").provenance(device)->compile_ms > 0);
    CHECK(program.module.kernel("only_here").compiled(device.arch()) != nullptr);

    const TestModule again("__global__ void only_here(int* p) { p[0] = 42; }");
    again.module.kernel("only_here").loaded(device);
    CHECK(again.module.kernel("only_here").provenance(device)->origin == Origin::memory);
}

TEST_CASE("the geometry covers the work, with whole warps and blocks that fit") {
    const TestModule program(three);
    const Kernel kernel = program.module.kernel("scale");
    const Device device(0);
    const LaunchLimits& limits = kernel.loaded(device).limits;
    for (const std::uint64_t n : {1ULL, 31ULL, 32ULL, 33ULL, 1000003ULL, 5000000000ULL}) {
        const std::array work{n};
        const LaunchConfig config = kernel.configuration_for(device, work);
        CHECK_NOTHROW(check(config, limits));
        CHECK(config.block.x % 32 == 0);
        CHECK(config.block.count() * config.grid.count() >= n);
        CHECK(config.block.count() * (config.grid.count() - 1) < n);
    }
    const std::array image{std::uint64_t{1920}, std::uint64_t{1080}};
    const LaunchConfig flat = kernel.configuration_for(device, image);
    CHECK(flat.block == Dim3{32, 8, 1});
    CHECK(flat.grid == Dim3{60, 135, 1});
    const std::array volume{std::uint64_t{5}, std::uint64_t{1}, std::uint64_t{300}};
    const LaunchConfig thick = kernel.configuration_for(device, volume);
    CHECK_NOTHROW(check(thick, limits));
    CHECK(std::uint64_t{thick.block.x} * thick.grid.x >= 5);
    CHECK(thick.block.y * thick.grid.y == 1);
    CHECK(std::uint64_t{thick.block.z} * thick.grid.z >= 300);
}

TEST_CASE("no work, and more than a grid can have, are refused") {
    const TestModule program(three);
    const Kernel kernel = program.module.kernel("scale");
    const Device device(0);
    const std::array none{std::uint64_t{0}};
    const std::array tall{std::uint64_t{1}, std::uint64_t{1} << 40};
    CHECK_THROWS_AS(kernel.configuration_for(device, none), ArgumentError);
    CHECK_THROWS_AS(kernel.configuration_for(device, {}), ArgumentError);
    CHECK_THROWS_WITH_AS(kernel.configuration_for(device, tall), doctest::Contains("grid_stride"),
                         ArgumentError);
}
