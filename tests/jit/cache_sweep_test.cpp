#include <set>

#include <doctest/doctest.h>

#include <bascule/jit/files/file_identity.hpp>
#include <bascule/jit/lookup/cache.hpp>
#include <bascule/jit/lookup/disk_cache.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

constexpr std::int64_t minute = 60'000'000'000, day = 24 * 60 * minute, years = 3650 * day;

/// A directory of files with given sizes and times.
class Files {
  public:
    /// Writes a file that was last used `age_ns` ago.
    std::string add(const std::string& name, std::size_t bytes, std::int64_t age_ns) {
        root_.write(name, std::string(bytes, 'x'));
        directory.stamp(name, now_ns() - age_ns);
        return name;
    }
    std::string entry(char digit, std::size_t bytes, std::int64_t age_ns) {
        return add(std::string(32, digit) + ".0", bytes, age_ns);
    }
    std::string temporary(char digit, std::int64_t age_ns) {
        return add("tmp-123-" + std::string(16, digit), 10, age_ns);
    }
    std::set<std::string> names() const {
        std::vector<CacheDirectory::Listed> files;
        CHECK_FALSE(directory.list(files));
        std::set<std::string> names;
        for (const auto& file : files) names.insert(file.name);
        return names;
    }

  private:
    TemporaryDirectory root_;

  public:
    CacheDirectory directory{root_.path()};
};

TEST_CASE("what was not used for longest goes first, until the rest is within the limit") {
    Files files;
    const std::string oldest = files.entry('a', 100, 3 * day), older = files.entry('b', 100, 2 * day),
                      newer = files.entry('c', 100, day), newest = files.entry('d', 100, 0);
    const Removed none = sweep(files.directory, 400);
    CHECK(none.entries == 0);
    CHECK(files.names().size() == 4);
    const Removed two = sweep(files.directory, 299);
    CHECK(two.entries == 2);
    CHECK(two.bytes == 200);
    CHECK_FALSE(two.problem);
    CHECK(files.names() == std::set{newer, newest});
    sweep(files.directory, 0);
    CHECK(files.names().empty());
}

TEST_CASE("nothing is removed without a limit, and an empty entry is one to a limit of nothing") {
    Files files;
    files.entry('a', 100, years);
    files.entry('b', 0, 0);
    CHECK(sweep(files.directory, CacheLimit::unlimited).entries == 0);
    CHECK(sweep(files.directory, 0).entries == 2);
}

TEST_CASE("temporary files of killed processes go after an hour, and those that are being written stay") {
    Files files;
    files.temporary('a', 61 * minute);
    files.temporary('b', years);
    files.temporary('c', -years);
    const std::string young = files.temporary('d', 59 * minute), writing = files.temporary('e', 0);
    sweep(files.directory, CacheLimit::unlimited);
    CHECK(files.names() == std::set{young, writing});
    sweep(files.directory, 0);
    CHECK(files.names() == std::set{young, writing});
}

TEST_CASE("files of other names stay, whatever their age") {
    Files files;
    std::set<std::string> names;
    for (const std::string& name :
         {std::string("notes.txt"), std::string("tmp-notes"), std::string("tmp-12-notes"),
          std::string("tmp--"), "tmp-x-" + std::string(16, 'a'), std::string(32, 'a') + ".8",
          std::string(32, 'g') + ".0", std::string(31, 'a') + ".0", std::string(32, 'a') + ".0.bak"}) {
        names.insert(files.add(name, 100, years));
    }
    sweep(files.directory, 0);
    CHECK(files.names() == names);
}

TEST_CASE("an entry of a clock that was ahead goes before those that are known to be used") {
    Files files;
    const std::string future = files.entry('a', 100, -years), old = files.entry('b', 100, 2 * day);
    sweep(files.directory, 100);
    CHECK(files.names() == std::set{old});
}

TEST_CASE("a sweep is due once an hour, in whichever process and wherever the clock jumps") {
    Files files;
    const auto sweeps = [&] {
        const std::string old = files.entry('a', 100, day);
        sweep_if_due(files.directory, 0);
        return files.names().count(old) == 0;
    };
    CHECK(sweeps());
    CHECK_FALSE(sweeps());
    const auto sweeps_when_the_last_was = [&](std::int64_t age_ns) {
        files.add("swept", 0, age_ns);
        return sweeps();
    };
    CHECK_FALSE(sweeps_when_the_last_was(59 * minute));
    CHECK_FALSE(sweeps_when_the_last_was(-59 * minute));
    for (const std::int64_t age : {61 * minute, -61 * minute, years, -years}) {
        CAPTURE(age);
        CHECK(sweeps_when_the_last_was(age));
        CHECK_FALSE(sweeps());
    }
}

TEST_CASE("a store sweeps when it is due, and a hit never does") {
    const TemporaryDirectory root;
    const CacheDirectory directory(root.path());
    Cache cache(toolkit(), root.path());
    const auto add_abandoned = [&](const char* digit) {
        const std::string name = std::string("tmp-1-000000000000000") + digit;
        root.write(name, "");
        directory.stamp(name, now_ns() - day);
        return root.path() + "/" + name;
    };
    const std::string first = add_abandoned("1");
    cache.image(program("__global__ void first() {}"));
    CHECK_FALSE(std::filesystem::exists(first));
    directory.stamp("swept", now_ns() - day);
    const std::string second = add_abandoned("2");
    cache.clear();
    CHECK(cache.image(program("__global__ void first() {}")).origin == Origin::disk);
    CHECK(std::filesystem::exists(second));
    cache.image(program("__global__ void second() {}"));
    CHECK_FALSE(std::filesystem::exists(second));
}

TEST_CASE("the limit is the environment's, else 1 GiB, and what is no size is said") {
    const auto limit_of = [](const char* value) {
        const Environment limit("BASCULE_CACHE_LIMIT", value);
        return default_cache_limit();
    };
    CHECK(limit_of(nullptr).bytes == 1'073'741'824);
    CHECK(limit_of("").bytes == 1'073'741'824);
    CHECK(limit_of("500MB").bytes == 500'000'000);
    CHECK(limit_of("0").bytes == 0);
    CHECK(limit_of("unlimited").bytes == CacheLimit::unlimited);
    CHECK(limit_of("500MB").problem.empty());
    const CacheLimit wrong = limit_of("much");
    CHECK(wrong.bytes == 1'073'741'824);
    CHECK(contains(wrong.problem, "BASCULE_CACHE_LIMIT is \"much\""));
}

}  // namespace
}  // namespace bascule::testing
