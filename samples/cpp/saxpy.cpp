// saxpy from C++: a kernel from a string, a stream, two arrays, a launch that the C++ compiler checks.
#include <cstdio>
#include <string>
#include <vector>

#include <bascule/bascule.hpp>

namespace {

constexpr const char* text = R"(
__global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
)";

void run(int n) {
    bascule::Source source;
    source.text = text;
    source.name = "saxpy.cu";  // for messages
    const bascule::Kernel saxpy(source, "saxpy");
    // Compiles the kernel or finds it in the cache, and checks that these are its types.
    const auto launch = saxpy.typed<void(float, const float*, float*, int)>();

    std::vector<float> host_x(n);
    for (int i = 0; i < n; ++i) host_x[i] = static_cast<float>(i % 1000);
    const bascule::Stream stream;
    const auto x = bascule::to_device(host_x, stream);  // a DeviceArray<float>
    const auto y = bascule::to_device(std::vector<float>(n, 1), stream);

    const bascule::Device device = bascule::Device::current();
    std::printf("%s on %s%s\n", to_string(saxpy.signature(device)).c_str(), device.name().c_str(),
                device.emulated() ? " (emulated)" : "");
    launch.forall(stream, n, 2, x, y, n);  // at least n threads; 2 becomes a float

    const std::vector<float> result = y.copy_to_host();  // waits for the kernel
    for (int i = 0; i < n; ++i) {
        const float expected = 2 * host_x[i] + 1;
        if (result[i] == expected) continue;
        throw bascule::Error("element " + std::to_string(i) + " is " + std::to_string(result[i]) +
                             ", expected " + std::to_string(expected));
    }
    std::printf("every one of %d elements is right\n", n);
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
