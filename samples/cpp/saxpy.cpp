// saxpy from C++: a kernel from a string, a stream, two buffers, a launch; the result is checked.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <bascule/bascule.hpp>

namespace {

constexpr const char* text = R"(
__global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
)";

bascule::Kernel compile() {
    bascule::Source source;
    source.text = text;
    source.name = "saxpy.cu";  // for messages
    return {source, "saxpy"};
}

void run(std::size_t n) {
    const float a = 2;
    std::vector<float> x(n), y(n);
    for (std::size_t i = 0; i < n; ++i) {
        x[i] = static_cast<float>(i % 1000);
        y[i] = 1;
    }

    const bascule::Device device = bascule::Device::current();
    const bascule::Stream stream(device);
    const bascule::DeviceBuffer device_x(n * sizeof(float), device);
    const bascule::DeviceBuffer device_y(n * sizeof(float), device);
    copy_to_device(stream, device_x.address(), x.data(), device_x.bytes());
    copy_to_device(stream, device_y.address(), y.data(), device_y.bytes());

    const bascule::Kernel saxpy = compile();
    // Compiles, or finds it compiled; checks that these are the kernel's types.
    const auto launch = saxpy.typed<void(float, const float*, float*, int)>();

    const std::uint64_t work = n;
    const bascule::LaunchConfig config = saxpy.configuration_for(device, {&work, 1});
    std::printf("%s on %s%s: grid %s, block %s\n", to_string(saxpy.signature(device)).c_str(),
                device.name().c_str(), device.emulated() ? " (emulated)" : "", to_string(config.grid).c_str(),
                to_string(config.block).c_str());
    launch(stream, config, a, reinterpret_cast<const float*>(device_x.address()),
           reinterpret_cast<float*>(device_y.address()), static_cast<int>(n));

    std::vector<float> result(n);
    copy_to_host(stream, result.data(), device_y.address(), device_y.bytes());
    for (std::size_t i = 0; i < n; ++i) {
        const float expected = a * x[i] + y[i];
        if (result[i] == expected) continue;
        throw bascule::Error("element " + std::to_string(i) + " is " + std::to_string(result[i]) +
                             ", expected " + std::to_string(expected));
    }
    std::printf("every one of %zu elements is right\n", n);
}

}  // namespace

int main() {
    try {
        run(1000003);
        return 0;
    } catch (const bascule::Error& error) {
        std::fprintf(stderr, "saxpy: %s\n", error.what());
        return 1;
    }
}
