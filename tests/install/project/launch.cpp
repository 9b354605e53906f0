// Launches on whatever device there is, and tells which driver that was.
#include <cstdint>
#include <cstdio>
#include <vector>

#include <bascule/bascule.hpp>
#include <bascule/runtime/driver/driver.hpp>

int main() {
    try {
        bascule::Source source;
        source.text =
            "__global__ void squares(unsigned int* out) {\n"
            "    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
            "    if (i < 1000) out[i] = i * i;\n"
            "}\n";
        const bascule::Kernel squares(source, "squares");
        const bascule::Device device = bascule::Device::current();
        const bascule::Stream stream(device);

        std::vector<std::uint32_t> result(1000, 0xdeadbeef);
        const bascule::DeviceBuffer buffer(result.size() * sizeof result[0], device);
        bascule::RawInterface fields;
        fields.shape.push_back(1000);
        fields.typestr = "<u4";
        fields.pointer = buffer.address();
        bascule::ArgumentPack arguments(squares.signature(device));
        arguments.set(0, bascule::validate(fields));
        bascule::LaunchConfig config;
        config.grid.x = 4;
        config.block.x = 256;
        squares.launch(stream, config, arguments);
        copy_to_host(stream, result.data(), buffer.address(), buffer.bytes());

        for (std::uint32_t i = 0; i < 1000; ++i) {
            if (result[i] != i * i) throw bascule::Error("element " + std::to_string(i) + " is wrong");
        }
        std::printf("driver: %s\nall 1000 elements are right\n", bascule::Driver::get().path().c_str());
        return 0;
    } catch (const bascule::Error& error) {
        std::fprintf(stderr, "launch: %s\n", error.what());
        return 1;
    }
}
