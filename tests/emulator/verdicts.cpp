// The emulated device's verdicts on PTX texts. Reads them from standard input, each followed by a NUL. Prints a line
// for each: "taken", or why it is refused. tests/emulator/ptxas.py compares that with the verdicts of ptxas.
#include <cstdio>
#include <iostream>
#include <string>

#include "machine/registry.hpp"
#include "program/code.hpp"
#include "program/loaded_module.hpp"

namespace {

using namespace emulated::program;

std::string verdict(const std::string& text) {
    const auto loaded = load(text);
    if (const auto* error = std::get_if<LoadError>(&loaded))
        return "line " + std::to_string(error->line) + ": " + error->message;
    for (const Kernel& kernel : std::get<0>(loaded)->kernels) {
        if (!kernel.refusal.empty()) return kernel.refusal;
        for (const Key& key : kernel.code->keys) {
            if (!emulated::machine::registry().find(key)) return "the machine has no handler for it";
        }
    }
    return "taken";
}

}  // namespace

int main() {
    std::ios::sync_with_stdio(false);
    for (std::string text; std::getline(std::cin, text, '\0');) {
        std::string line = verdict(text);
        for (char& c : line) c = c == '\n' ? ' ' : c;
        std::printf("%s\n", line.c_str());
        std::fflush(stdout);
    }
    return 0;
}
