#include <doctest/doctest.h>

#include <bascule/jit/options/cache_settings.hpp>

namespace bascule::testing {
namespace {

TEST_CASE("a size is a number and a unit of 1000 or 1024") {
    CHECK(parse_byte_size("0") == 0);
    CHECK(parse_byte_size("1234") == 1234);
    CHECK(parse_byte_size("7B") == 7);
    CHECK(parse_byte_size("2kB") == 2000);
    CHECK(parse_byte_size("500MB") == 500'000'000);
    CHECK(parse_byte_size("2gb") == 2'000'000'000);
    CHECK(parse_byte_size("1TB") == 1'000'000'000'000);
    CHECK(parse_byte_size("3KiB") == 3072);
    CHECK(parse_byte_size(" 1.5 MiB ") == 1'572'864);
    CHECK(parse_byte_size("1GiB") == 1'073'741'824);
    CHECK(parse_byte_size("1TiB") == 1'099'511'627'776);
}

TEST_CASE("what is no size is told from one") {
    for (const char* text : {"", " ", "MB", "five", "-1", "-0MB", "1.2.3", "1 M B", "1G", "1e3", "0x10",
                             "nan", "inf", "9999999999TB", "9223372036854775808", "1GBB"}) {
        CAPTURE(text);
        CHECK_FALSE(parse_byte_size(text).has_value());
    }
}

}  // namespace
}  // namespace bascule::testing
