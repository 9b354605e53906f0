#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/program/program.hpp>
#include <bascule/runtime/kernels/global.hpp>
#include <bascule/runtime/kernels/typed_kernel.hpp>
#include <bascule/runtime/linking/linking.hpp>

#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

namespace {

Source text(const char* name, const char* source) {
    Source made;
    made.name = name;
    made.text = source;
    return made;
}

const Source callee = text("callee.cu", R"(
__device__ float table[4] = {1, 2, 3, 4};
__device__ float twice(float x) { return 2 * x; })");
const Source caller = text("caller.cu", R"(
extern __device__ float table[4];
__device__ float twice(float);
__global__ void apply(float* x, float add, int n) {
    if (threadIdx.x < n) x[threadIdx.x] = twice(x[threadIdx.x]) + table[threadIdx.x % 4] + add;
})");

void check_applied(const Module& module) {
    const Stream stream;
    const std::vector<float> start = counting(32);
    const auto x = to_device(start, stream);
    const auto launch = module.kernel("apply").typed<void(float*, float, int)>();
    launch(stream, {.grid = {1}, .block = {32}}, x, 10, 32);
    const std::vector<float> result = x.copy_to_host();
    for (std::size_t i = 0; i < result.size(); ++i)
        CHECK(result[i] == 2 * start[i] + static_cast<float>(i % 4 + 1) + 10);
}

template <class Exception, class Action>
std::string message_of(Action&& action) {
    try {
        action();
    } catch (const Exception& error) {
        return error.what();
    }
    return {};
}

}  // namespace

TEST_CASE("texts, modules and codes link to one module") {
    check_applied(link({caller, callee}));
    const Module linked = link({callee, caller});
    check_applied(linked);
    const Module again = link({linked, text("more.cu", "__global__ void more(int* x) { *x = 7; }")});
    check_applied(again);
    CHECK(again.kernel_names() == std::vector<std::string>{"apply", "more"});
    CHECK(linked.kernel("apply").declared_signatures() == "void apply(float* x, float add, int n)");
}

TEST_CASE("a linked module has one copy of each variable, which the host can write") {
    const Module linked = link({caller, callee});
    const Global table = find_global(linked, "table");
    CHECK(table.variable.bytes() == 16);
    const Stream stream;
    const std::vector<float> values = {1, 2, 3, 4};
    std::vector<float> read(4);
    copy_to_host(stream, read.data(), table.address, 16);
    CHECK(read == values);
    CHECK_THROWS_AS(find_global(linked, "tables"), CompileError);
}

TEST_CASE("names that do not fit, and parts that are none, are errors") {
    const auto undefined = message_of<CompileError>([] { link({caller}); });
    CHECK(undefined.find("is used in caller.cu, and none of the linked texts defines it (caller.cu)") !=
          undefined.npos);
    const auto twice = message_of<CompileError>([] { link({caller, callee, callee}); });
    CHECK(twice.find("is defined in callee.cu and in callee.cu (2)") != twice.npos);
    CHECK_THROWS_AS(link({}), ArgumentError);
}

TEST_CASE("code from elsewhere is a module, from memory and from a file") {
    const Module module = TestModule(R"(
        __global__ void apply(float* x, float add, int n) {
            if (threadIdx.x < n) x[threadIdx.x] = 2 * x[threadIdx.x] + threadIdx.x % 4 + 1 + add;
        })")
                              .module;
    const std::string ptx = module.compile(Device::current().arch()).image->ptx;
    const Module loaded = load_module(code_from_bytes(ptx, "apply.ptx"));
    check_applied(loaded);
    CHECK(loaded.kernel("apply").declared_signatures() == "void apply(float* arg1, float arg2, int arg3)");
    CHECK(loaded.source().name == "apply.ptx");

    const std::filesystem::path file = std::filesystem::temp_directory_path() / "bascule-linking-test.ptx";
    std::ofstream(file) << ptx;
    check_applied(load_module(file.string()));
    std::filesystem::remove(file);
    CHECK_THROWS_AS(load_module(file.string()), Error);
    CHECK_THROWS_AS(code_from_bytes("__global__ void k() {}"), ArgumentError);
}

TEST_CASE("a typed kernel of code without types has the host's types") {
    const Module module = TestModule(R"(
        extern "C" __global__ void plain(int* out, int a, unsigned char b, double c) { *out = a + b + c; })")
                              .module;
    const Module loaded = load_module(code_from_bytes(module.compile(Device::current().arch()).image->ptx));
    const Stream stream;
    const auto out = to_device(std::vector<int>{0}, stream);
    const auto launch = loaded.kernel("plain").typed<void(int*, int, unsigned char, double)>();
    launch(stream, {.grid = {1}, .block = {1}}, out, 3, 200, 2.0);
    CHECK(out.copy_to_host()[0] == 205);
    CHECK_THROWS_AS((loaded.kernel("plain").typed<void(int*, long, unsigned char, double)>()), ArgumentError);
}
