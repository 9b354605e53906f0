// emulator_vectors: runs every row of the operation table on the machine and compares the results with a reference
// written from the PTX ISA. Prints a line for each cell of the table; exits with 1 if a result differs.
// tests/emulator/coverage.py reads it.
//   emulator_vectors [--only KIND] [--corrupt]
//   emulator_vectors --illegal    lists opcodes that load although PTX does not have them
//   emulator_vectors --table      prints the cells and compares nothing
//   emulator_vectors --refused FILE    lists the opcodes of a file that the table does not have
#include "vectors.hpp"

#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "machine/registry.hpp"

namespace {

struct Kind {
    std::string_view name;
    void (*run)(vectors::Tally&);
};
constexpr Kind kinds[] = {
    {"scalar", vectors::scalar_vectors},   {"packing", vectors::packing_vectors},
    {"memory", vectors::memory_vectors},   {"exchange", vectors::exchange_vectors},
    {"control", vectors::control_vectors}, {"tensor", vectors::tensor_vectors},
    {"video", vectors::video_vectors},     {"wide", vectors::wide_vectors},
    {"async", vectors::async_vectors},     {"tensor_copy", vectors::tensor_copy_vectors},
    {"image", vectors::image_vectors},
};

int list_illegal() {
    for (const std::string& spelling : vectors::accepted_though_illegal())
        std::printf("%s\n", spelling.c_str());
    return 0;
}

int print_table() {
    vectors::Tally().print();
    return 0;
}

// Reads full opcodes, one per line, each up to a tab, and prints those that the table does not have.
int list_refused(const char* path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error(std::string("cannot read ") + path);
    for (std::string line; std::getline(file, line);) {
        const std::string opcode = line.substr(0, line.find('\t'));
        if (opcode.empty() || opcode[0] == '#' || vectors::known(opcode)) continue;
        std::printf("%s\n", opcode.c_str());
    }
    return 0;
}

int usage() {
    std::fprintf(
        stderr, "usage: emulator_vectors [--only KIND] [--corrupt] | --illegal | --table | --refused FILE\n");
    return 2;
}

}  // namespace

int main(int count, char** arguments) try {
    std::string_view only;
    bool corrupt = false;
    for (int i = 1; i < count; ++i) {
        const std::string_view argument = arguments[i];
        if (argument == "--only" && i + 1 < count)
            only = arguments[++i];
        else if (argument == "--corrupt")
            corrupt = true;
        else if (argument == "--refused" && i + 1 < count)
            return list_refused(arguments[++i]);
        else if (argument == "--illegal")
            return list_illegal();
        else if (argument == "--table")
            return print_table();
        else
            return usage();
    }
    vectors::Tally tally;
    if (corrupt) tally.corrupt_next();
    for (const Kind& kind : kinds) {
        if (only.empty() || only == kind.name) kind.run(tally);
    }
    tally.print();
    std::printf("instruction set %s: %llu results compared, %llu different\n",
                emulated::machine::instruction_set(), static_cast<unsigned long long>(tally.compared()),
                static_cast<unsigned long long>(tally.different()));
    return tally.different() ? 1 : 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "emulator_vectors: %s\n", error.what());
    return 3;
}
