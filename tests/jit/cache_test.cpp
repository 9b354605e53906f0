#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <bascule/jit/lookup/cache.hpp>
#include <bascule/jit/lookup/disk_cache.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

Cache fresh_cache() { return Cache(toolkit()); }

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
    cache.nvrtc();
    const Program one = program("__global__ void k(int n) {}");
    const std::uint64_t calls = Nvrtc::compile_calls();
    constexpr int count = 16;
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

/// A cache as in another process: nothing in memory.
Cache cache_on(const TemporaryDirectory& directory) { return Cache(toolkit(), directory.path() + "/cache"); }

TEST_CASE("what one cache compiled, the next has from disk, without NVRTC") {
    const TemporaryDirectory directory;
    const Program one = program("__global__ void k(int* p) { *p = 4711; }");
    Cache first = cache_on(directory);
    const auto compiled = first.image(one);
    CHECK(compiled.origin == Origin::compiled);
    const std::uint64_t calls = Nvrtc::compile_calls();
    Cache second = cache_on(directory);
    const auto loaded = second.image(one);
    CHECK(loaded.origin == Origin::disk);
    CHECK(loaded.image->ptx == compiled.image->ptx);
    CHECK(second.image(one).origin == Origin::memory);
    second.clear();
    CHECK(second.image(one).origin == Origin::disk);
    CHECK(Nvrtc::compile_calls() == calls);
    CHECK(second.statistics().from_disk == 2);
    CHECK(second.statistics().from_memory == 1);
    CHECK(second.statistics().compiled == 0);
}

TEST_CASE("a program's image on disk is of its headers, and each of eight states is kept") {
    const TemporaryDirectory directory;
    Program one = program("#include \"value.h\"\n__global__ void k(int* p) { *p = VALUE; }");
    one.options.include_paths = {directory.path()};
    const auto value_of_state = [&](int state, Origin origin) {
        directory.write("value.h", "#define VALUE " + std::to_string(5000 + state) + "\n");
        Cache cache = cache_on(directory);
        const Cache::Lookup found = cache.image(one);
        CHECK(found.origin == origin);
        CHECK(contains(found.image->ptx, std::to_string(5000 + state)));
    };
    for (int state = 0; state < 3; ++state) value_of_state(state, Origin::compiled);
    for (int state = 0; state < 3; ++state) value_of_state(state, Origin::disk);
}

TEST_CASE("the same text in another file and directory is the same program") {
    const TemporaryDirectory directory;
    Cache cache = cache_on(directory);
    Program one = program("__global__ void k(int* p) { *p = __LINE__; }");
    cache.image(one);
    one.source.name = "elsewhere.cu";
    one.source.first_line = 100;
    one.source.directory = directory.path();
    CHECK(cache.image(one).origin == Origin::memory);
}

TEST_CASE("a file's own directory decides what it includes, and is no part of another's image") {
    const TemporaryDirectory directory;
    directory.write("one/value.h", "#define VALUE 6001\n");
    directory.write("two/value.h", "#define VALUE 6002\n");
    Program one = program("#include \"value.h\"\n__global__ void k(int* p) { *p = VALUE; }"), two = one;
    one.source.directory = directory.path() + "/one";
    two.source.directory = directory.path() + "/two";
    Cache cache = cache_on(directory);
    CHECK(contains(cache.image(one).image->ptx, "6001"));
    CHECK(contains(cache.image(two).image->ptx, "6002"));
    CHECK(contains(cache.image(one).image->ptx, "6001"));
    CHECK(cache.image(two).origin == Origin::memory);
    Cache next = cache_on(directory);
    CHECK(contains(next.image(two).image->ptx, "6002"));
    CHECK(contains(next.image(one).image->ptx, "6001"));
    CHECK(next.statistics().from_disk == 2);
}

TEST_CASE("a program of given headers is found in memory and on disk whatever they are now, or is an error") {
    const TemporaryDirectory headers, entries;
    Cache cache = cache_on(entries);
    Program one = program("#include \"value.h\"\n__global__ void k(int* p) { *p = VALUE; }");
    one.options.include_paths = {headers.path()};
    headers.write("value.h", "#define VALUE 7001\n");
    const Cache::Lookup made = cache.image(one);
    REQUIRE(made.headers != nullptr);
    CHECK(made.headers_known);
    headers.write("value.h", "#define VALUE 7002\n");
    Program given = one, other = one;
    given.headers = other.headers = made.headers;
    other.source.text += "// another";
    CHECK(contains(cache.image(one).image->ptx, "7002"));
    CHECK(cache.image(given).image == made.image);
    CHECK(contains(cache_on(entries).image(given).image->ptx, "7001"));
    const std::string path = headers.path() + "/value.h";
    CHECK(contains(message_of<Error>([&] { cache.image(other); }),
                   "the header " + path + " has changed since kernels.cu:1 was compiled"));
    {
        const Cache::Disabled disabled;
        CHECK(contains(message_of<Error>([&] { cache.image(other); }), "has changed since"));
    }
    headers.write("value.h", "#define VALUE 7001\n");
    CHECK(contains(cache.image(other).image->ptx, "7001"));
    std::filesystem::remove(path);
    CHECK(contains(cache.image(other).image->ptx, "7001"));
}

TEST_CASE("a doubtful program has no known headers") {
    Cache cache = fresh_cache();
    CHECK_FALSE(
        cache.image(program("__global__ void k() {} // __TIME__\n#define T __TIME__\n")).headers_known);
    CHECK(cache.image(program("__global__ void k(int) {}")).headers_known);
}

TEST_CASE("a probed header that appears is noticed") {
    const TemporaryDirectory directory, entries;
    Cache cache = cache_on(entries);
    Program one = program(
        "#if __has_include(<extra.h>)\n#define VALUE 3333\n#else\n#define VALUE 4444\n#endif\n"
        "__global__ void k(int* p) { *p = VALUE; }");
    one.options.include_paths = {directory.path()};
    CHECK(contains(cache.image(one).image->ptx, "4444"));
    directory.write("extra.h", "");
    CHECK(contains(cache.image(one).image->ptx, "3333"));
    std::filesystem::remove(directory.path() + "/extra.h");
    CHECK(contains(cache.image(one).image->ptx, "4444"));
    CHECK(cache.statistics().from_memory == 1);
}

TEST_CASE("a header that goes is noticed") {
    const TemporaryDirectory directory;
    Cache cache = cache_on(directory);
    Program one = program("#include \"value.h\"\n__global__ void k(int* p) { *p = VALUE; }");
    one.options.include_paths = {directory.path()};
    const std::string path = directory.write("value.h", "#define VALUE 1\n");
    cache.image(one);
    std::filesystem::remove(path);
    CHECK_THROWS_AS(cache.image(one), CompileError);
    CHECK_THROWS_AS(cache_on(directory).image(one), CompileError);
}

TEST_CASE("what only a preprocessor can follow is compiled each time") {
    const TemporaryDirectory directory;
    directory.write("value.h", "#define VALUE 1\n");
    Program one = program(
        "#define ID(...) __VA_ARGS__\n#include ID(\"value.h\")\n__global__ void k(int* p) { *p = VALUE; }");
    one.options.include_paths = {directory.path()};
    Cache cache = cache_on(directory);
    CHECK(cache.image(one).origin == Origin::compiled);
    CHECK(cache.image(one).origin == Origin::compiled);
    CHECK_FALSE(std::filesystem::exists(cache.disk().directory()));
}

TEST_CASE("a header that is edited while NVRTC reads it is not believed") {
    const TemporaryDirectory directory;
    Program one = program("#include \"value.h\"\n__global__ void k(int* p) { *p = VALUE; }");
    one.options.include_paths = {directory.path()};
    Cache cache = cache_on(directory);
    cache.nvrtc();
    // The header is changed and restored all the time, but a wrong image must not stay in the cache.
    std::atomic<bool> stop{false};
    directory.write("value.h", "#define VALUE 7001\n");
    std::thread editor([&] {
        while (!stop) {
            directory.write("value.h", "#define VALUE 7002\n");
            directory.write("value.h", "#define VALUE 7001\n");
        }
    });
    for (int i = 0; i < 5; ++i) {
        try {
            cache.image(one);
        } catch (const CompileError&) {  // the file was empty at that moment
        }
    }
    stop = true;
    editor.join();
    CHECK(contains(cache.image(one).image->ptx, "7001"));
    CHECK(contains(cache_on(directory).image(one).image->ptx, "7001"));
}

TEST_CASE("an entry that is damaged is compiled again and replaced") {
    const TemporaryDirectory directory;
    const Program one = program("__global__ void k(int* p) { *p = 8001; }");
    cache_on(directory).image(one);
    for (const auto& entry : std::filesystem::directory_iterator(directory.path() + "/cache")) {
        std::filesystem::resize_file(entry.path(), std::filesystem::file_size(entry.path()) / 2);
    }
    Cache cache = cache_on(directory);
    const Cache::Lookup again = cache.image(one);
    CHECK(again.origin == Origin::compiled);
    CHECK(contains(again.image->ptx, "8001"));
    CHECK(cache_on(directory).image(one).origin == Origin::disk);
}

TEST_CASE("what is kept of one purpose, architecture or option is not another's") {
    const TemporaryDirectory directory;
    Program one =
        program("#ifndef VALUE\n#define VALUE 9001\n#endif\n__global__ void k(int* p) { *p = VALUE; }");
    cache_on(directory).image(one);
    Program defined = one, other_arch = one;
    defined.options.defines = {{"VALUE", "9002"}};
    other_arch.arch = parse_arch("compute_90");
    Cache cache = cache_on(directory);
    CHECK(cache.image(defined).origin == Origin::compiled);
    CHECK(contains(cache.image(defined).image->ptx, "9002"));
    CHECK(contains(cache.image(other_arch).image->ptx, ".target sm_90"));
    CHECK(cache.image(one).origin == Origin::disk);
}

TEST_CASE("a directory that cannot be used costs a warning, never a compile") {
    Cache cache(toolkit(), {"/proc/nowhere"});
    std::vector<std::string> warnings;
    cache.set_warning_handler([&](const std::string& text) { warnings.push_back(text); });
    for (const char* text : {"__global__ void a() {}", "__global__ void b() {}"}) {
        CHECK(cache.image(program(text)).origin == Origin::compiled);
        CHECK(cache.image(program(text)).origin == Origin::memory);
    }
    CHECK(warnings.size() == 1);
}

}  // namespace
}  // namespace bascule::testing
