// Launches a kernel on the available device, checks its result, and prints the path of the emulated device's library if
// the process has loaded it.
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <bascule/bascule.hpp>

int main() {
    try {
        bascule::Source source;
        source.text =
            "__global__ void squares(unsigned int* out) {\n"
            "    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
            "    if (i < 1000) out[i] = i * i;\n"
            "}\n";
        const bascule::Kernel squares(source, "squares");
        const bascule::Stream stream;
        const auto out = bascule::to_device(std::vector<std::uint32_t>(1000, 0xdeadbeef), stream);
        squares.typed<void(std::uint32_t*)>()(stream, {.grid = {4}, .block = {256}}, out);

        const std::vector<std::uint32_t> result = out.copy_to_host();
        for (std::uint32_t i = 0; i < 1000; ++i) {
            if (result[i] != i * i) throw bascule::Error("element " + std::to_string(i) + " is wrong");
        }
        std::ifstream maps("/proc/self/maps");
        for (std::string line; std::getline(maps, line);) {
            if (line.find("libbascule_emulator") == line.npos) continue;
            std::printf("driver: %s\n", line.substr(line.find('/')).c_str());
            break;
        }
        std::printf("all 1000 elements are right\n");
        return 0;
    } catch (const bascule::Error& error) {
        std::fprintf(stderr, "launch: %s\n", error.what());
        return 1;
    }
}
