// saxpy from C++: a kernel from a string, a stream, two buffers, a launch; the result is checked.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <bascule/interface/error.hpp>
#include <bascule/runtime/kernel.hpp>
#include <bascule/runtime/memory.hpp>

namespace {

constexpr const char* text = R"(
__global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
)";

/// The buffer as the array that a kernel's argument is checked against, written by `stream`.
bascule::ArrayView floats(const bascule::DeviceBuffer& buffer, const bascule::Stream& stream) {
    bascule::RawInterface fields;
    fields.shape.push_back(static_cast<std::int64_t>(buffer.bytes() / sizeof(float)));
    fields.typestr = "<f4";
    fields.pointer = buffer.address();
    fields.has_stream = true;
    fields.stream = stream.ref().handle();
    return bascule::validate(fields);
}

bascule::Scalar scalar(float value) {
    bascule::Scalar scalar;
    scalar.kind = bascule::Scalar::Kind::floating;
    scalar.floating = value;
    return scalar;
}

bascule::Scalar scalar(std::size_t value) {
    bascule::Scalar scalar;
    scalar.integer = static_cast<std::int64_t>(value);
    return scalar;
}

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
    bascule::ArgumentPack args(saxpy.signature(device));  // compiles, or finds it compiled
    args.set(0, scalar(a));
    args.set(1, floats(device_x, stream));
    args.set(2, floats(device_y, stream));
    args.set(3, scalar(n));

    const std::uint64_t work = n;
    const bascule::LaunchConfig config = saxpy.configuration_for(device, {&work, 1});
    std::printf("%s on %s%s: grid %s, block %s\n", to_string(saxpy.signature(device)).c_str(),
                device.name().c_str(), device.emulated() ? " (emulated)" : "", to_string(config.grid).c_str(),
                to_string(config.block).c_str());
    saxpy.launch(stream, config, args);

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
