#include <algorithm>
#include <filesystem>

#include <doctest/doctest.h>

#include <bascule/jit/program/program.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

TEST_CASE("an architecture is read and written alike") {
    for (const char* text : {"sm_75", "sm_80", "sm_90a", "sm_100f", "sm_120", "compute_80", "compute_100a"}) {
        CAPTURE(std::string(text));
        CHECK(to_string(parse_arch(text)) == text);
    }
    CHECK(parse_arch("sm_120") == Arch{12, 0, '\0', false});
    CHECK(parse_arch("compute_90a") == Arch{9, 0, 'a', true});
}

TEST_CASE("what is no architecture is refused with the form to use") {
    for (const char* text :
         {"", "80", "sm_", "sm_8", "sm80", "sm_80x", "sm_1234", "native", "sm_a", "compute_"}) {
        CAPTURE(std::string(text));
        CHECK(contains(message_of<ArgumentError>([&] { parse_arch(text); }), "sm_90a"));
    }
}

TEST_CASE("options become NVRTC's arguments in a fixed order") {
    CompileOptions options;
    options.std = "c++20";
    options.defines = {{"N", "4"}, {"FLAG", ""}, {"SQUARE(x)", "x*x"}};
    options.include_paths = {"/inc"};
    options.lineinfo = true;
    options.fast_math = true;
    options.max_registers = 32;
    options.extra = {"--fmad=false"};
    CHECK(to_arguments(options) ==
          std::vector<std::string>{"-std=c++20", "-DN=4", "-DFLAG", "-DSQUARE(x)=x*x", "-I/inc", "-lineinfo",
                                   "-use_fast_math", "-maxrregcount=32", "--fmad=false"});
    options.debug = true;
    const std::vector<std::string> with_debug = to_arguments(options);
    CHECK(std::find(with_debug.begin(), with_debug.end(), "-G") != with_debug.end());
    CHECK(std::find(with_debug.begin(), with_debug.end(), "-lineinfo") == with_debug.end());
}

TEST_CASE("a relative include path is one of the current directory") {
    CompileOptions options;
    options.include_paths = {"inc", "./other/.."};
    const std::vector<std::string> arguments = to_arguments(options);
    const std::string here = std::filesystem::current_path().string();
    CHECK(arguments.at(1) == "-I" + here + "/inc");
    CHECK(arguments.at(2) == "-I" + here + "/");
}

TEST_CASE("an option that has a field of its own is refused in extra, with the field") {
    for (const auto& [given, field] :
         std::vector<std::pair<std::string, std::string>>{{"-arch=sm_90", "`arch`"},
                                                          {"--gpu-architecture=sm_90", "`arch`"},
                                                          {"-std=c++20", "`std`"},
                                                          {"--std=c++20", "`std`"},
                                                          {"-DA=B", "`defines`"},
                                                          {"-D", "`defines`"},
                                                          {"--define-macro=A", "`defines`"},
                                                          {"-I/inc", "`include_paths`"},
                                                          {"-I", "`include_paths`"},
                                                          {"--include-path=/inc", "`include_paths`"},
                                                          {"-include=a.h", "#include"},
                                                          {"-G", "`debug`"},
                                                          {"--pre-include=a.h", "#include"},
                                                          {"-o", "no file"},
                                                          {"-dlto", "loaded"},
                                                          {"", "empty"},
                                                          {"fmad=false", "begins with `-`"},
                                                          {"-Xptxas -v", "--name=value"}}) {
        const std::string& option = given;
        CAPTURE(option);
        CompileOptions options;
        options.extra = {"--fmad=true", option};
        const std::string message = message_of<ArgumentError>([&] { to_arguments(options); });
        CAPTURE(message);
        CHECK(contains(message, "`extra`"));
        CHECK(contains(message, field));
    }
}

TEST_CASE("options that only NVRTC has pass through extra and reach it") {
    Program one = program("__global__ void k(float* p) { int unused; *p = p[1] * p[2] + p[3]; }");
    CHECK(contains(compiler().compile(one).ptx, "fma.rn"));
    one.options.extra = {"--fmad=false", "-default-device", "-diag-suppress=177", "--ptxas-options=-v",
                         "-w",           "-rdc=true"};
    const Image image = compiler().compile(one);
    CHECK_FALSE(contains(image.ptx, "fma.rn"));
    CHECK_FALSE(contains(image.log, "unused"));
}

TEST_CASE("a limit of registers is kept by the code") {
    // All 64 values are loaded before the first is stored, so they need 64 registers.
    std::string text = "__global__ void k(float* p) {\n";
    for (int i = 0; i < 64; ++i)
        text += "    float v" + std::to_string(i) + " = p[" + std::to_string(i) + "];\n";
    for (int i = 0; i < 64; ++i)
        text += "    p[" + std::to_string(63 - i) + "] = v" + std::to_string(i) + ";\n";
    Program one = program(text + "}");
    one.arch = parse_arch("sm_80");
    one.options.extra = {"--ptxas-options=-v"};
    const auto registers = [&] {
        const std::string log = compiler().compile(one).log;
        return std::stoi(log.substr(log.find("Used ") + 5));
    };
    CHECK(registers() > 24);
    one.options.max_registers = 24;
    CHECK(registers() <= 24);
}

TEST_CASE("a field with a value that cannot be is named, with what it takes") {
    const auto message = [](auto&& change) {
        CompileOptions options;
        change(options);
        return message_of<ArgumentError>([&] { to_arguments(options); });
    };
    CHECK(contains(message([](CompileOptions& o) { o.std = "c++98"; }), "c++17"));
    CHECK(contains(message([](CompileOptions& o) { o.std = "C++20"; }), "`std`"));
    CHECK(contains(message([](CompileOptions& o) { o.max_registers = 0; }), "`max_registers`"));
    CHECK(contains(message([](CompileOptions& o) { o.max_registers = 256; }), "1 to 255 registers"));
    CHECK(contains(message([](CompileOptions& o) { o.include_paths = {""}; }), "`include_paths`"));
    CHECK(contains(message([](CompileOptions& o) { o.headers = {{"", "x"}}; }), "`headers`"));
    CHECK(contains(message([](CompileOptions& o) { o.headers = {{"a.h", std::string("a\0b", 3)}}; }), "NUL"));
    CHECK(contains(message([](CompileOptions& o) { o.defines = {{"A", "1\n2"}}; }), "one line"));
}

TEST_CASE("a define that is no macro name is refused, not passed on") {
    for (const char* name : {"", "1N", "a b", "a-b", "N=3", "-I/"}) {
        CAPTURE(std::string(name));
        CompileOptions options;
        options.defines = {{name, "1"}};
        CHECK(contains(message_of<ArgumentError>([&] { to_arguments(options); }), "defines"));
    }
}

TEST_CASE("a line behind #line is found where it stands") {
    const std::string text = "one\n#line 100\nthree\n\n  # 7\nsix\n#line 3 \"gen.cu\"\neight\n#line 200\n";
    for (const auto& [called, line] :
         {std::pair{1, 1}, {100, 3}, {101, 4}, {7, 6}, {3, 3}, {200, 200}, {103, 103}}) {
        const int asked = called;  // clang 14 cannot capture a structured binding in a lambda
        CAPTURE(asked);
        CHECK(line_in_text(text, asked) == line);
    }
    CHECK(line_in_text("#if A\n#define line 3\n", 2) == 2);
    CHECK(line_in_text("", 5) == 5);
    CHECK(line_in_text("#line\n#liner 3\n# 99999999999\n#line x\n", 4) == 4);
    CHECK(line_in_text(std::string(1'000'000, ' ') + "#line 9\nx\n", 9) == 2);
}

TEST_CASE("a file is read whole and knows its directory") {
    const TemporaryDirectory directory;
    const std::string path = directory.write("k.cu", "__global__ void k() {}\r\n");
    const Source source = read_source(path);
    CHECK(source.text == "__global__ void k() {}\r\n");
    CHECK(source.name == path);
    CHECK(source.directory == directory.path());
    CHECK(read_source(directory.write("empty.cu", "")).text.empty());
}

TEST_CASE("a file that cannot be read is named with the system's reason") {
    const TemporaryDirectory directory;
    const std::string missing = message_of<Error>([&] { read_source(directory.path() + "/none.cu"); });
    CHECK(contains(missing, directory.path() + "/none.cu"));
    CHECK(contains(missing, "No such file"));
    CHECK(contains(message_of<Error>([&] { read_source(directory.path()); }), "directory"));
}

}  // namespace
}  // namespace bascule::testing
