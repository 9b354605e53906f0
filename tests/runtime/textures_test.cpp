#include <cmath>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/kernels/typed_kernel.hpp>
#include <bascule/runtime/memory/device_array.hpp>
#include <bascule/runtime/textures/texture.hpp>

#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

namespace {

constexpr const char* text = R"(
__global__ void fill(float* x, float value) { x[blockIdx.x * blockDim.x + threadIdx.x] = value + threadIdx.x; }
__global__ void fill_surface(cudaSurfaceObject_t s, float value) {
    surf2Dwrite(value + threadIdx.x, s, 4 * threadIdx.x, blockIdx.x);
}
__global__ void read(cudaTextureObject_t t, float* out, float shift) {
    out[blockIdx.x * blockDim.x + threadIdx.x] = tex2D<float>(t, threadIdx.x + shift, blockIdx.x + 0.5f);
}
__global__ void fetch(unsigned long long t, int* out) { out[threadIdx.x] = tex1Dfetch<int>(t, threadIdx.x); }
__global__ void volume(cudaTextureObject_t t, float4* out) {
    out[threadIdx.x] = tex3D<float4>(t, threadIdx.x + 0.5f, 1.5f, 2.5f);
}
)";

constexpr DType single{DType::Kind::floating, 4};
constexpr std::int64_t rows = 4, columns = 32;
const LaunchConfig everywhere{.grid = {rows}, .block = {columns}};

template <class Action>
std::string message_of(Action&& action) {
    try {
        action();
    } catch (const ArgumentError& error) {
        return error.what();
    }
    return "no error";
}

bool contains(const std::string& text_of_it, const char* part) {
    return text_of_it.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a typed launch samples an array where it lies, ordered by the array's stream") {
    const TestModule program(text);
    const Stream producer, stream;
    const DeviceArray<float> image({rows, columns}, producer), out({rows, columns}, stream);
    const Texture texture(image.view(), {.filter = FilterMode::linear});
    const auto fill = program.module.kernel("fill").typed<void(float*, float)>();
    const auto read = program.module.kernel("read").typed<void(Texture, float*, float)>();
    for (const float value : {1.0f, 10.0f}) {
        fill(producer, everywhere, image, value);
        read(stream, everywhere, texture, out, 1);
        fill(producer, everywhere, image, -1);  // waits for the launch that reads
        const std::vector<float> got = out.copy_to_host();
        for (std::size_t i = 0; i < got.size(); ++i) {
            const auto x = static_cast<float>(i % columns);
            CHECK(got[i] == value + std::min(x + 0.5f, static_cast<float>(columns - 1)));
        }
    }
}

TEST_CASE("a surface writes a CUDA array, which a texture reads") {
    const TestModule program(text);
    const Stream producer, stream;
    const CudaArray array(std::vector{rows, columns}, single, {.surface = true}, producer);
    const Surface surface(array);
    const Texture texture(array);
    const DeviceArray<float> out({rows, columns}, stream);
    program.module.kernel("fill_surface").typed<void(Surface, float)>()(stream, everywhere, surface, 5);
    program.module.kernel("read").typed<void(Texture, float*, float)>()(producer, everywhere, texture, out,
                                                                        0.5f);
    const std::vector<float> got = out.copy_to_host();
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == 5 + static_cast<float>(i % columns));
    std::vector<float> all(got.size());
    array.copy_to_host(stream, all.data());
    CHECK(all == got);
}

TEST_CASE("a CUDA array is filled from the host and from the device, and copied to both") {
    const Stream stream;
    const std::vector<float> values = counting(3 * 5 * 7 * 4);
    const CudaArray array(std::vector<std::int64_t>{3, 5, 7, 4}, single, {.channels = 4}, stream);
    CHECK(array.bytes() == values.size() * sizeof(float));
    array.copy_from_host(stream, values.data());
    std::vector<float> got(values.size());
    array.copy_to_host(stream, got.data());
    CHECK(got == values);
    const auto source = to_device(std::vector<float>(values.rbegin(), values.rend()), stream);
    array.copy_from_device(stream, source.view().pointer);
    const DeviceArray<float> target(values.size(), stream);
    array.copy_to_device(stream, target.view().pointer);
    CHECK(target.copy_to_host() == std::vector<float>(values.rbegin(), values.rend()));

    const TestModule program(text);
    const Texture texture(array);
    const DeviceArray<float> out({7, 4}, stream);
    ArgumentPack pack(program.module.kernel("volume").signature(Device::current()));
    pack.set(0, texture.argument());
    pack.set(1, out.view());
    program.module.kernel("volume").launch(stream, {.grid = {1}, .block = {7}}, pack);
    const std::vector<float> sampled = out.copy_to_host();
    for (std::size_t i = 0; i < sampled.size(); ++i)
        CHECK(sampled[i] == values[values.size() - 1 - ((2 * 5 + 1) * 7 * 4 + i)]);
}

TEST_CASE(
    "an integer that the text does not call a texture takes one, and the text's own word takes nothing else") {
    const TestModule program(text);
    const Stream stream;
    const auto table = to_device(std::vector<int>{3, 1, 4, 1, 5}, stream);
    const Texture texture(table.view());
    const DeviceArray<int> out(5, stream);
    program.module.kernel("fetch").typed<void(Texture, int*)>()(stream, {.grid = {1}, .block = {5}}, texture,
                                                                out);
    CHECK(out.copy_to_host() == table.copy_to_host());
    const Kernel read = program.module.kernel("read");
    CHECK(contains(message_of([&] { read.typed<void(unsigned long long, float*, float)>(); }),
                   "cudaTextureObject_t"));
    CHECK(contains(message_of([&] { read.typed<void(Surface, float*, float)>(); }), "bascule::Surface"));
    ArgumentPack pack(read.signature(Device::current()));
    Scalar number;
    number.integer = 3;
    CHECK(contains(message_of([&] { pack.set(0, number); }), "Pass a bascule::Texture"));
    CHECK(contains(message_of([&] { pack.set(1, texture.argument()); }), "cudaTextureObject_t"));
}

TEST_CASE("what cannot be sampled is refused with a reason") {
    const Stream stream;
    const DeviceArray<float> image({rows, columns}, stream), odd({rows, std::int64_t{5}}, stream);
    const DeviceArray<double> wide({rows, columns}, stream);
    const auto of = [](const ArrayView& view, const TextureOptions& options = {}) {
        return message_of([&] { const Texture made(view, options); });
    };
    CHECK(of(image.view()) == "no error");
    CHECK(contains(of(odd.view()), "multiple of 32. A bascule::CudaArray takes a copy"));
    CHECK(contains(of(wide.view()), "float64"));
    CHECK(contains(of(image.view(), {.address = {AddressMode::wrap}}), "set `normalized`"));
    CHECK(contains(of(image.view(), {.read = ReadMode::normalized}), "8 and 16 bits"));
    CHECK(contains(message_of([] {
                       const Surface made(CudaArray(std::vector<std::int64_t>{4, 4}, single));
                   }),
                   "CudaArrayOptions::surface"));
    CHECK(contains(message_of([] {
                       const CudaArray made(std::vector<std::int64_t>{4, 0}, single);
                   }),
                   "no empty axis"));
}

TEST_CASE("textures, surfaces and arrays move") {
    const Stream stream;
    CudaArray array(std::vector<std::int64_t>{4, 4}, single, {.surface = true}, stream);
    CUarray_st* const handle = array.handle();
    CudaArray other = std::move(array);
    CHECK(other.handle() == handle);
    Texture texture(other), second(other);
    const std::uint64_t first = texture.handle();
    second = std::move(texture);
    CHECK(second.handle() == first);
    Surface surface(other);
    const Surface moved = std::move(surface);
    CHECK(moved.handle() != 0);
}
