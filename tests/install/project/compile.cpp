// Compiles for a named architecture, on a machine that need not have a driver, and prints which libraries were opened.
#include <cstdio>
#include <fstream>
#include <set>
#include <string>

#include <bascule/bascule.hpp>

int main(int, char** arguments) {
    try {
        bascule::Source source;
        source.text = "__global__ void halve(float* x) { x[threadIdx.x] /= 2; }\n";
        const bascule::Module module(source);
        const auto image = module.compile(bascule::parse_arch(arguments[1])).image;
        std::printf("%s: %zu bytes of machine code\n", to_string(image->arch).c_str(), image->cubin.size());
        std::printf("%s\n", to_string(image->kernels.at(0).signature).c_str());
    } catch (const bascule::Error& error) {
        std::fprintf(stderr, "compile: %s\n", error.what());
        return 1;
    }
    std::set<std::string> libraries;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        const std::size_t slash = line.find('/');
        if (slash != line.npos && line.find(".so", slash) != line.npos) libraries.insert(line.substr(slash));
    }
    std::printf("opened:");
    for (const std::string& library : libraries) std::printf(" %s", library.c_str());
    std::printf("\n");
}
