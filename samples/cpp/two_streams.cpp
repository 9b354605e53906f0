// Two streams from C++: each array names the stream that writes it, which is enough to make launches wait for one
// another.
//
//   front:  wave -> x ----------------\            (the launch of `mix` waits for x on the device,
//   back:   wave -> y -> mix(x, y) -> z             the host waits only for the result)
//
// `wave` is a template: the signature that the host writes chooses the instance.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <bascule/bascule.hpp>

namespace {

constexpr const char* text = R"(
__constant__ float weights[2];

template <class T>
__global__ void wave(bascule::array_view<T> out, T frequency) {
    for (auto i : bascule::grid_stride(out.size())) out[i] = sin(frequency * static_cast<T>(i));
}

__global__ void mix(const float* x, const float* y, float* z, int n) {
    for (auto i : bascule::grid_stride(n)) z[i] = weights[0] * x[i] + weights[1] * y[i];
}
)";

void run(int n) {
    bascule::Source source;
    source.text = text;
    source.name = "two_streams.cu";  // for messages
    const bascule::Module module(source);
    using bascule::ArrayView;
    const auto wave = module.kernel("wave").typed<void(ArrayView, float)>({"float"});
    const auto mix = module.kernel("mix").typed<void(ArrayView, ArrayView, ArrayView, int)>();

    const bascule::Device device = bascule::Device::current();
    const bascule::Stream front;
    const bascule::Stream back;
    const bascule::DeviceArray<float> x(n, front);
    const bascule::DeviceArray<float> y(n, back);
    const bascule::DeviceArray<float> z(n, back);

    // A variable of the device code, written in the order of the stream on which it is read.
    const float weights[2] = {0.75F, -2.0F};
    const bascule::Global table = find_global(mix.kernel(), "weights", device);
    copy_to_device(back, table.address, weights, sizeof weights);

    wave.forall(front, n, x, 0.001F);
    wave.forall(back, n, y, 0.003F);
    mix.forall(back, n, x, y, z, n);
    std::printf("launched on two streams of %s%s; nothing has been waited for\n", device.name().c_str(),
                device.emulated() ? " (emulated)" : "");

    const std::vector<float> result = z.copy_to_host();  // waits for `back`, which waits for `front`
    float worst = 0;
    for (int i = 0; i < n; ++i) {
        const float expected = weights[0] * std::sin(0.001F * static_cast<float>(i)) +
                               weights[1] * std::sin(0.003F * static_cast<float>(i));
        const float error = std::fabs(result[i] - expected);
        if (!(error <= 1e-5F)) {
            throw bascule::Error("element " + std::to_string(i) + " is " + std::to_string(result[i]) +
                                 ", expected " + std::to_string(expected));
        }
        worst = std::max(worst, error);
    }
    std::printf("every one of %d elements is right, to %.1e\n", n, static_cast<double>(worst));
}

}  // namespace

int main() {
    try {
        run(200003);
        return 0;
    } catch (const bascule::Error& error) {
        std::fprintf(stderr, "two_streams: %s\n", error.what());
        return 1;
    }
}
