#include <latch>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <bascule/jit/cache.hpp>
#include <bascule/jit/cache_key.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

Cache fresh_cache() { return Cache(std::make_shared<Compiler>(toolkit())); }

TEST_CASE("the second request for a program comes from memory") {
    Cache cache = fresh_cache();
    const Program one = program("__global__ void k() {}");
    const std::uint64_t calls = Nvrtc::compile_calls();
    const Cache::Lookup first = cache.image(one);
    const Cache::Lookup second = cache.image(one);
    CHECK(first.origin == Origin::compiled);
    CHECK(second.origin == Origin::memory);
    CHECK(first.image == second.image);
    CHECK(Nvrtc::compile_calls() == calls + 1);
    const CacheStatistics statistics = cache.statistics();
    CHECK(statistics.compiled == 1);
    CHECK(statistics.from_memory == 1);
    CHECK(statistics.from_disk == 0);
    cache.clear();
    CHECK(cache.image(one).origin == Origin::compiled);
}

TEST_CASE("many threads that ask for one program compile it once") {
    Cache cache = fresh_cache();
    cache.compiler().nvrtc();
    const Program one = program("__global__ void k(int n) {}");
    const std::uint64_t calls = Nvrtc::compile_calls();
    constexpr int count = 8;
    std::latch all_ask(count);
    std::vector<std::shared_ptr<const Image>> got(count);
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) {
        threads.emplace_back([&, i] {
            all_ask.arrive_and_wait();
            got[static_cast<std::size_t>(i)] = cache.image(one).image;
        });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(Nvrtc::compile_calls() == calls + 1);
    for (const auto& image : got) CHECK(image == got[0]);
}

TEST_CASE("different programs compile at the same time, each right") {
    Cache cache = fresh_cache();
    std::vector<std::thread> threads;
    std::vector<std::string> ptx(4);
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&, i] {
            const std::string number = std::to_string(7001 + i);
            ptx[static_cast<std::size_t>(i)] =
                cache.image(program("__global__ void k(int* p) { *p = " + number + "; }")).image->ptx;
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (int i = 0; i < 4; ++i) CHECK(contains(ptx[static_cast<std::size_t>(i)], std::to_string(7001 + i)));
}

TEST_CASE("a program that does not compile is tried again") {
    Cache cache = fresh_cache();
    const Program wrong = program("__global__ void k() { oops; }");
    const std::uint64_t calls = Nvrtc::compile_calls();
    CHECK_THROWS_AS(cache.image(wrong), CompileError);
    CHECK_THROWS_AS(cache.image(wrong), CompileError);
    CHECK(Nvrtc::compile_calls() == calls + 2);
    CHECK(cache.statistics().compiled == 0);
}

TEST_CASE("an edited header is never missed, and one put back is a hit") {
    const TemporaryDirectory directory;
    Cache cache = fresh_cache();
    Program one = program("#include \"value.h\"\n__global__ void k(int* p) { *p = VALUE; }");
    one.options.include_paths = {directory.path()};
    directory.write("value.h", "#include \"deeper.h\"\n");
    directory.write("deeper.h", "#define VALUE 1111\n");
    CHECK(contains(cache.image(one).image->ptx, "1111"));
    CHECK(cache.image(one).origin == Origin::memory);
    directory.write("deeper.h", "#define VALUE 2222\n");
    const Cache::Lookup edited = cache.image(one);
    CHECK(edited.origin == Origin::compiled);
    CHECK(contains(edited.image->ptx, "2222"));
    directory.write("deeper.h", "#define VALUE 1111\n");
    CHECK(cache.image(one).origin == Origin::memory);
    CHECK(contains(cache.image(one).image->ptx, "1111"));
}

TEST_CASE("a header that begins to shadow another is noticed") {
    const TemporaryDirectory first, second;
    Cache cache = fresh_cache();
    Program one = program("#include \"value.h\"\n__global__ void k(int* p) { *p = VALUE; }");
    one.options.include_paths = {first.path(), second.path()};
    second.write("value.h", "#define VALUE 2222\n");
    CHECK(contains(cache.image(one).image->ptx, "2222"));
    first.write("value.h", "#define VALUE 1111\n");
    CHECK(contains(cache.image(one).image->ptx, "1111"));
}

TEST_CASE("a header of the toolkit that the user's directory begins to shadow is noticed") {
    const TemporaryDirectory directory;
    Cache cache = fresh_cache();
    Program one = program(
        "#include <cuda_bf16.h>\n#ifndef VALUE\n#define VALUE 2222\n#endif\n"
        "__global__ void k(int* p) { *p = VALUE; }");
    one.options.include_paths = {directory.path()};
    CHECK(contains(cache.image(one).image->ptx, "2222"));
    directory.write("cuda_bf16.h", "#define VALUE 1111\n");
    CHECK(contains(cache.image(one).image->ptx, "1111"));
}

TEST_CASE("what decides a compile is in the key, what is for people is not") {
    const std::shared_ptr<const Nvrtc> nvrtc = compiler().nvrtc();
    const auto text = [&](const Program& one, const std::string& headers = "") {
        return key_of(one, *nvrtc, headers).text;
    };
    const Program one = program("__global__ void k() {}");
    const std::string base = text(one);

    Program named = one;
    named.source.name = "other.cu";
    named.source.first_line = 9;
    CHECK(text(named) == base);

    std::vector<Program> others(8, one);
    others[0].source.text += " ";
    others[1].arch = parse_arch("sm_80");
    others[2].options.std = "c++20";
    others[3].options.defines = {{"A", "B"}};
    others[4].options.headers = {{"a.h", ""}};
    others[5].options.lineinfo = true;
    others[6].options.extra = {"--fmad=false"};
    others[7].options.include_paths = {"inc"};
    for (const Program& other : others) CHECK(text(other) != base);
    CHECK(text(one, "a.h 1") != base);
    CHECK(key_of(one, *nvrtc, "") == key_of(named, *nvrtc, ""));
}

}  // namespace
}  // namespace bascule::testing
