#include <algorithm>

#include <doctest/doctest.h>

#include <bascule/jit/source.hpp>

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
    options.include_paths = {"inc"};
    options.lineinfo = true;
    options.fast_math = true;
    options.extra = {"--maxrregcount=32"};
    CHECK(to_arguments(options) == std::vector<std::string>{"-std=c++20", "-DN=4", "-DFLAG",
                                                            "-DSQUARE(x)=x*x", "-Iinc", "-lineinfo",
                                                            "-use_fast_math", "--maxrregcount=32"});
    options.debug = true;
    const std::vector<std::string> with_debug = to_arguments(options);
    CHECK(std::find(with_debug.begin(), with_debug.end(), "-G") != with_debug.end());
    CHECK(std::find(with_debug.begin(), with_debug.end(), "-lineinfo") == with_debug.end());
}

TEST_CASE("a define that is no macro name is refused, not passed on") {
    for (const char* name : {"", "1N", "a b", "a-b", "N=3", "-I/"}) {
        CAPTURE(std::string(name));
        CompileOptions options;
        options.defines = {{name, "1"}};
        CHECK(contains(message_of<ArgumentError>([&] { to_arguments(options); }), "defines"));
    }
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
