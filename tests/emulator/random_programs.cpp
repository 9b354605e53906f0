// emulator_random_programs: random PTX on the machine and on the reference interpreter; every register of
// every thread must end alike.
//   emulator_random_programs [--programs N] [--seed S] [--print] [--corrupt]
// Prints the seed and the text of a program that differs, and exits with 1; `--seed S --programs 1` repeats
// it.
#include "random_programs.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string_view>

#include "machine/registry.hpp"
#include "ptx_device.hpp"
#include "reference/interpreter.hpp"
#include "vectors.hpp"

namespace {

using random_programs::input_words;
using random_programs::output_words;
using random_programs::scratch_words;

constexpr std::uint64_t poison = 0xa5a5'5a5a'c3c3'3c3cull;

struct Options {
    std::uint64_t programs = 4'000, seed = 1;
    bool print = false, corrupt = false;
};

/// The memory of all threads.
struct Memory {
    std::vector<std::uint64_t> in, scratch, out;
};

Memory some_memory(unsigned threads, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Memory made{std::vector<std::uint64_t>(threads * input_words),
                std::vector<std::uint64_t>(threads * scratch_words),
                std::vector<std::uint64_t>(threads * output_words, poison)};
    using vectors::Type;
    constexpr Type types[] = {Type::u64,    Type::f64, Type::f32, Type::f16x2,
                              Type::bf16x2, Type::u32, Type::u8};
    for (auto& word : made.in) word = vectors::some_value(types[random() % std::size(types)], random);
    for (auto& word : made.scratch) word = random();
    return made;
}

/// The first difference in words, or an empty string.
std::string difference(const char* what, const std::vector<std::uint64_t>& expected,
                       const std::vector<std::uint64_t>& got, unsigned words) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (expected[i] == got[i]) continue;
        char text[160];
        std::snprintf(text, sizeof text,
                      "thread %zu, %s[%zu]: the reference has %016llx, the machine %016llx", i / words, what,
                      i % words, static_cast<unsigned long long>(expected[i]),
                      static_cast<unsigned long long>(got[i]));
        return text;
    }
    return "";
}

/// Runs a program on the machine and the reference. Returns a difference, or an empty string.
std::string compare(const random_programs::Program& program, std::uint64_t seed, bool corrupt) {
    const unsigned threads = program.grid * program.block;
    Memory machine = some_memory(threads, seed), expected = machine;

    testing::Device device(program.text);
    if (vectors::lacks_a_handler(device)) return "the machine has no handler for an instruction";
    const std::uint64_t in = device.array(machine.in), scratch = device.array(machine.scratch),
                        out = device.array(machine.out);
    if (const auto fault = device.launch("k", {program.grid}, {program.block}, in, scratch, out))
        return fault->message;

    const std::uint64_t parameters[] = {in, scratch, out};
    reference::Interpreter::Launch launch{
        program.grid, program.block, std::as_bytes(std::span(parameters)), {}};
    for (auto [base, words] :
         {std::pair{in, &expected.in}, {scratch, &expected.scratch}, {out, &expected.out}}) {
        launch.memory.push_back({base, std::as_writable_bytes(std::span(*words))});
    }
    const reference::Interpreter interpreter(program.text);
    for (std::uint32_t b = 0; b < program.grid; ++b) {
        for (std::uint32_t t = 0; t < program.block; ++t) interpreter.run(launch, b, t);
    }
    if (corrupt) expected.out[0] ^= 1;
    const std::string outputs = difference("out", expected.out, machine.out, output_words);
    return outputs.empty() ? difference("scratch", expected.scratch, machine.scratch, scratch_words)
                           : outputs;
}

bool parse(int count, char** arguments, Options& options) {
    for (int i = 1; i < count; ++i) {
        const std::string_view argument = arguments[i];
        if (argument == "--print")
            options.print = true;
        else if (argument == "--corrupt")
            options.corrupt = true;
        else if (argument == "--programs" && i + 1 < count)
            options.programs = std::strtoull(arguments[++i], nullptr, 0);
        else if (argument == "--seed" && i + 1 < count)
            options.seed = std::strtoull(arguments[++i], nullptr, 0);
        else
            return false;
    }
    return true;
}

}  // namespace

int main(int count, char** arguments) try {
    Options options;
    if (!parse(count, arguments, options)) {
        std::fprintf(stderr,
                     "usage: emulator_random_programs [--programs N] [--seed S] [--print] [--corrupt]\n");
        return 2;
    }
    const random_programs::Opcodes opcodes;
    std::uint64_t failures = 0, threads = 0;
    for (std::uint64_t seed = options.seed; seed < options.seed + options.programs && failures < 5; ++seed) {
        const random_programs::Program program = generate(opcodes, seed);
        if (options.print) std::printf("%s\n", program.text.c_str());
        std::string wrong;
        try {
            wrong = compare(program, seed, options.corrupt);
        } catch (const std::exception& error) {
            wrong = error.what();
        }
        threads += program.grid * program.block;
        if (wrong.empty()) continue;
        ++failures;
        std::printf("%s\nprogram --seed %llu --programs 1 (%u blocks of %u threads): %s\n",
                    program.text.c_str(), static_cast<unsigned long long>(seed), program.grid, program.block,
                    wrong.c_str());
    }
    std::printf("instruction set %s: %llu programs from seed %llu, %llu threads, %llu programs failed\n",
                emulated::machine::instruction_set(), static_cast<unsigned long long>(options.programs),
                static_cast<unsigned long long>(options.seed), static_cast<unsigned long long>(threads),
                static_cast<unsigned long long>(failures));
    return failures ? 1 : 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "emulator_random_programs: %s\n", error.what());
    return 3;
}
