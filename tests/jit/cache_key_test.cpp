#include <filesystem>
#include <fstream>
#include <set>

#include <doctest/doctest.h>

#include <bascule/jit/files/file_identity.hpp>
#include <bascule/jit/lookup/cache_entry.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

std::string key_text(const Program& program) { return key_of(program, *compiler().nvrtc()).text; }

TEST_CASE("names and places of a text are not in its key") {
    const Program one = program("__global__ void k() {}");
    Program elsewhere = one;
    elsewhere.source.name = "other.cu";
    elsewhere.source.first_line = 9;
    elsewhere.source.directory = "/somewhere";
    CHECK(key_text(elsewhere) == key_text(one));
}

TEST_CASE("everything that decides a compile is in the key") {
    const Program one = program("__global__ void k() {}");
    std::vector<Program> programs(14, one);
    programs[1].source.text += " ";
    programs[2].arch = parse_arch("sm_80");
    programs[3].arch = parse_arch("compute_90");
    programs[4].options.std = "c++20";
    programs[5].options.defines = {{"A", "B"}};
    programs[6].options.headers = {{"a.h", ""}};
    programs[7].options.headers = {{"a.h", "int x;"}};
    programs[8].options.lineinfo = true;
    programs[9].options.extra = {"--fmad=false", "-w"};
    programs[10].options.include_paths = {"inc"};
    programs[11].instances = {{"k", "k<int>"}};
    programs[12].purpose = Program::Purpose::signatures;
    programs[13].options.fast_math = true;
    std::set<std::string> texts;
    for (const Program& each : programs) texts.insert(key_text(each));
    CHECK(texts.size() == programs.size());
}

TEST_CASE("fields cannot run into each other") {
    Program one = program("");
    one.options.include_paths = {"a", "b"};
    Program two = program("");
    two.options.include_paths = {"a\n3:-Ib"};
    CHECK(key_text(one) != key_text(two));
}

TEST_CASE("a library's identity is its build, its size and its time") {
    const std::string library = compiler().nvrtc()->path();
    const std::string identity = library_identity(library);
    CHECK(contains(identity, "build "));
    CHECK(contains(identity, std::to_string(std::filesystem::file_size(library))));
    CHECK(library_identity(library) == identity);
    CHECK(contains(compiler().nvrtc()->identity(), identity));
}

TEST_CASE("a library without a build ID is told by its content, and what is no file by nothing") {
    const TemporaryDirectory directory;
    const std::string one = library_identity(directory.write("one.so", "code"));
    CHECK(library_identity(directory.write("two.so", "code")) == one);
    CHECK(library_identity(directory.write("three.so", "kode")) != one);
    CHECK(library_identity(directory.path() + "/none.so").empty());
    CHECK(library_identity(directory.path()).empty());
}

TEST_CASE("a damaged library has another identity than the one it was, or none, and is never read beyond") {
    const TemporaryDirectory directory;
    const std::string library = compiler().nvrtc()->path();
    std::ifstream file(library, std::ios::binary);
    std::string start(1 << 16, '\0');
    file.read(start.data(), static_cast<std::streamsize>(start.size()));
    const std::string whole = library_identity(library);
    for (const std::size_t length : {0, 10, 63, 64, 100, 500, 700, 65536}) {
        CHECK(library_identity(directory.write("cut.so", start.substr(0, length))) != whole);
    }
    for (std::size_t at = 0; at < 1024; at += 7) {
        std::string flipped = start;
        flipped[at] = static_cast<char>(~flipped[at]);
        CHECK(library_identity(directory.write("flipped.so", flipped)) != whole);
    }
}

}  // namespace
}  // namespace bascule::testing
