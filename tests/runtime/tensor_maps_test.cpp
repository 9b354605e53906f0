// Tensor maps need compute capability 9.0: the test runtime_as_sm_90 runs these on a device that has it.
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/kernels/typed_kernel.hpp>
#include <bascule/runtime/memory/device_array.hpp>
#include <bascule/runtime/textures/tensor_map.hpp>

#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

namespace {

/// A type of the size of a CUtensorMap.
struct Map {
    std::array<std::byte, tensor_map_bytes> bytes;
};

bool has_tensor_maps() { return Device::current().capability().major >= 9; }

Dimensions list(std::vector<std::int64_t> values) { return Dimensions(values); }

ArgumentError::Details details_of(const ArrayView& array, const TensorMapOptions& options) {
    try {
        const TensorMap map(array, options);
    } catch (const ArgumentError& error) {
        return error.details();
    }
    return {.field = "none"};
}

constexpr const char* text_of_maps = R"(
struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };
__global__ void value(const __grid_constant__ CUtensorMap map, unsigned long long* out) {
    out[threadIdx.x] = map.opaque[threadIdx.x];
}
__global__ void pointer(const CUtensorMap* map, unsigned long long* out) {
    out[threadIdx.x] = map->opaque[threadIdx.x];
}
__global__ void number(int n) {}
)";

}  // namespace

TEST_CASE("a typed launch passes a tensor map by value, ordered by its array's stream") {
    if (!has_tensor_maps()) return;
    const TestModule program(text_of_maps);
    const Stream producer, stream;
    const DeviceArray<float> image({64, 64}, producer);
    const DeviceArray<unsigned long long> out(16, stream);
    const TensorMap map(image.view(), {.box = list({8, 32}), .swizzle = 128});
    CHECK(map.bytes() == 8 * 32 * 4);
    const LaunchConfig one{.grid = {1}, .block = {16}};
    program.module.kernel("value").typed<void(TensorMap, unsigned long long*)>()(stream, one, map, out);
    std::vector<unsigned long long> words = out.copy_to_host();
    CHECK(std::memcmp(words.data(), map.encoded().data(), tensor_map_bytes) == 0);
    const auto by_address = program.module.kernel("pointer").typed<void(const Map*, unsigned long long*)>();
    by_address(stream, one, reinterpret_cast<const Map*>(map.address()), out);
    words = out.copy_to_host();
    CHECK(std::memcmp(words.data(), map.encoded().data(), tensor_map_bytes) == 0);
    CHECK_THROWS_AS(program.module.kernel("number").typed<void(TensorMap)>(), ArgumentError);
}

TEST_CASE("a broken rule of tensor maps names the option") {
    if (!has_tensor_maps()) return;
    const DeviceArray<float> image({64, 64});
    CHECK(details_of(image.view(), {.box = list({8, 32})}).field == "none");
    CHECK(details_of(image.view(), {.box = list({8})}).field == "box");
    CHECK(details_of(image.view(), {.box = list({8, 3})}).field == "box");
    CHECK(details_of(image.view(), {.box = list({8, 32}), .swizzle = 48}).field == "swizzle");
    CHECK(details_of(image.view(), {.box = list({8, 32}), .interleave = 16}).field == "array");
    CHECK(details_of(image.view(), {.box = list({8, 32}), .im2col = Im2col{}}).field == "array");
}

TEST_CASE("a device without tensor maps says which it needs") {
    if (has_tensor_maps()) return;
    const DeviceArray<float> image({64, 64});
    CHECK(details_of(image.view(), {.box = list({8, 32})}).field == "array");
}
