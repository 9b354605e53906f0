#include <bascule/interface/arguments/launch_config.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

/// The limits of an H100, minus 1 KiB of the kernel's own shared memory; the kernel accepts 512 threads.
constexpr LaunchLimits limits = {
    .grid = {2147483647, 65535, 65535}, .block = {1024, 1024, 64}, .threads = 512, .shared_bytes = 231424};

TEST_CASE("what a device takes is taken, up to the limit itself") {
    constexpr LaunchConfig good[] = {
        {},
        {.grid = {4096, 1, 1}, .block = {256, 1, 1}},
        {.grid = {2147483647, 65535, 65535}},
        {.grid = {}, .block = {512, 1, 1}},
        {.grid = {}, .block = {8, 1, 64}},
        {.grid = {}, .block = {}, .shared_bytes = 231424},
    };
    for (const LaunchConfig& config : good) CHECK_NOTHROW(check(config, limits));
}

TEST_CASE("a launch that the device cannot take is a value error with the field, the value and the limit") {
    struct Row {
        LaunchConfig config;
        std::initializer_list<std::string_view> parts;
    };
    const Row rows[] = {
        {{.grid = {0, 1, 1}}, {"`grid`", "(0,)", "at least 1"}},
        {{.grid = {1, 0, 1}}, {"`grid`", "(1, 0)", "at least 1"}},
        {{.grid = {1, 1, 0}}, {"`grid`", "(1, 1, 0)", "at least 1"}},
        {{.grid = {}, .block = {0, 1, 1}}, {"`block`", "(0,)", "at least 1"}},
        {{.grid = {2147483648, 1, 1}}, {"`grid`", "2147483648", "2147483647"}},
        {{.grid = {1, 65536, 1}}, {"`grid`", "65536", "in y", "65535"}},
        {{.grid = {1, 1, 65536}}, {"`grid`", "65536", "in z", "65535"}},
        {{.grid = {}, .block = {1025, 1, 1}}, {"`block`", "1025", "1024"}},
        {{.grid = {}, .block = {1, 1, 65}}, {"`block`", "65", "in z", "64"}},
        {{.grid = {}, .block = {513, 1, 1}}, {"`block`", "513 threads", "512"}},
        {{.grid = {}, .block = {32, 32, 1}}, {"`block`", "(32, 32)", "1024 threads", "512"}},
        {{.grid = {}, .block = {}, .shared_bytes = 231425}, {"`shared_bytes`", "231425", "231424"}},
    };
    for (const Row& row : rows) {
        check_refused([&] { check(row.config, limits); }, ArgumentError::Kind::value, row.parts);
    }
}

TEST_CASE("a launch over nothing is told of forall") {
    check_refused([] { check({.grid = {0, 1, 1}}, limits); }, ArgumentError::Kind::value, {"forall(0)"});
}

TEST_CASE("threads of a block are counted without overflow") {
    constexpr LaunchLimits lenient = {
        .grid = {4294967295, 1, 1}, .block = {4294967295, 4294967295, 1}, .threads = 1024, .shared_bytes = 0};
    // 65536 * 65536 is 0 in 32 bits.
    check_refused(
        [&] {
            check({.grid = {}, .block = {65536, 65536, 1}}, lenient);
        },
        ArgumentError::Kind::value, {"`block`", "4294967296 threads"});
}

TEST_CASE("extents are shown as Python would, without trailing ones") {
    CHECK(to_string(Dim3{4096, 1, 1}) == "(4096,)");
    CHECK(to_string(Dim3{1, 2, 1}) == "(1, 2)");
    CHECK(to_string(Dim3{1, 1, 3}) == "(1, 1, 3)");
}

}  // namespace
}  // namespace bascule::testing
