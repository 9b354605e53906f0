// Locks among processes, and the reasons that the log gives for a miss.
#include <chrono>
#include <filesystem>
#include <thread>

#include <doctest/doctest.h>

#include <bascule/jit/files/file_identity.hpp>
#include <bascule/jit/lookup/disk_cache.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

using namespace std::chrono_literals;

bool is_free_for_another_thread(const CacheDirectory& directory, const std::string& name) {
    bool free = false;
    std::thread([&] { free = directory.lock(name, 1ms).has_value(); }).join();
    return free;
}

TEST_CASE("one at a time holds a lock, and its file goes with it") {
    const TemporaryDirectory root;
    const CacheDirectory directory(root.path() + "/cache");
    {
        const auto lock = directory.lock("a.lock", 1ms);
        REQUIRE(lock);
        CHECK_FALSE(is_free_for_another_thread(directory, "a.lock"));
        CHECK(is_free_for_another_thread(directory, "b.lock"));
    }
    CHECK(is_free_for_another_thread(directory, "a.lock"));
    CHECK(std::filesystem::is_empty(root.path() + "/cache"));
}

TEST_CASE("a thread that holds a lock takes no other, which a thread that waits for it may hold") {
    const TemporaryDirectory root;
    const CacheDirectory directory(root.path() + "/cache");
    const auto lock = directory.lock("a.lock", 1ms);
    CHECK_FALSE(directory.lock("a.lock", 1min));
    CHECK_FALSE(directory.lock("b.lock", 1min));
}

TEST_CASE("where there can be no directory nobody waits") {
    const TemporaryDirectory root;
    const CacheDirectory directory(root.write("file", "") + "/cache");
    CHECK_FALSE(directory.lock("a.lock", 1min));
}

TEST_CASE("a sweep removes the locks that killed processes left") {
    const TemporaryDirectory root;
    const CacheDirectory directory(root.path());
    const std::string old_lock = lock_name({1, 2}), young_lock = lock_name({3, 4});
    root.write(old_lock, "");
    root.write(young_lock, "");
    directory.stamp(old_lock, now_ns() - 7'200'000'000'000);
    sweep(directory, CacheLimit::unlimited);
    CHECK_FALSE(std::filesystem::exists(root.path() + "/" + old_lock));
    CHECK(std::filesystem::exists(root.path() + "/" + young_lock));
}

TEST_CASE("a key's text is read as it was written") {
    Program written = program("__global__ void k() {}");
    written.options.defines = {{"A", "1"}};
    written.options.headers = {{"a.h", "text"}};
    written.instances = {{"k", "k<int>"}};
    const CacheKey key = key_of(written, *compiler().nvrtc());
    const std::optional<KeyFields> fields = fields_of(key.text);
    REQUIRE(fields);
    CHECK(fields->text == written.source.text);
    CHECK(fields->arguments == std::vector<std::string_view>{"-std=c++17", "-DA=1"});
    CHECK(fields->headers == KeyFields::Pairs{{"a.h", "text"}});
    CHECK(fields->instances == KeyFields::Pairs{{"k", "k<int>"}});
    CHECK(fields->arch == to_string(written.arch));
}

TEST_CASE("a key's text that was cut or changed has no fields, and nothing is read beyond it") {
    const std::string text = key_of(program("__global__ void k() {}"), *compiler().nvrtc()).text;
    for (std::size_t length = 0; length < text.size(); ++length)
        CHECK_FALSE(fields_of(std::string_view(text).substr(0, length)));
    for (std::size_t at = 0; at < text.size(); ++at) {
        std::string changed = text;
        changed[at] = '9';
        static_cast<void>(fields_of(changed));
    }
    CHECK_FALSE(fields_of("99999999999999999999:x\n"));
}

TEST_CASE("the entry that differs least from a program is the reason for its miss") {
    const TemporaryDirectory root;
    const std::string directory = root.path() + "/cache";
    DiskCache disk(directory, {});
    const auto store = [&](const Program& each) {
        disk.store(key_of(each, *compiler().nvrtc()), 0, {}, Image{});
    };
    Program near = program("__global__ void k() {}");
    near.options.defines = {{"A", "1"}};
    Program far = near;
    far.options.std = "c++20";
    far.options.fast_math = true;
    far.arch = {.major = 9, .minor = 0};
    Program wanted = near;
    wanted.options.defines = {{"A", "2"}};
    const auto reason = [&](const Program& each) {
        return DiskCache(directory, nullptr).why_missing(key_of(each, *compiler().nvrtc()), "");
    };
    CHECK(reason(wanted) == "no program of this text is on disk");
    store(far);
    CHECK(contains(reason(wanted), "architecture sm_90, now "));
    store(near);
    CHECK(reason(wanted) == "the nearest program on disk has the same text and options -DA=1, now -DA=2");
    CHECK(DiskCache({}, nullptr).why_missing(key_of(wanted, *compiler().nvrtc()), "") ==
          "there is no cache on disk");
}

}  // namespace
}  // namespace bascule::testing
