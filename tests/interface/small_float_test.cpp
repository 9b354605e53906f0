// Every pattern of every format, compared with the formats' definition in double arithmetic.
#include <cmath>
#include <limits>
#include <map>

#include <bascule/interface/types/small_float.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

struct Row {
    const char* name;
    int mantissa;
    int exponent_bits;
    double largest;
    bool has_infinity;
    bool has_nan;
};

// From table 1 of the OCP specification of each format; bfloat16 is the upper half of a float.
constexpr Row rows[] = {
    {"bfloat16", 7, 8, 3.3895313892515355e38, true, true},
    {"float8_e4m3fn", 3, 4, 448, false, true},
    {"float8_e5m2", 2, 5, 57344, true, true},
    {"float6_e2m3fn", 3, 2, 7.5, false, false},
    {"float6_e3m2fn", 2, 3, 28, false, false},
    {"float4_e2m1fn", 1, 2, 6, false, false},
};

/// The finite numbers >= 0, each with its pattern.
std::map<double, int> numbers_of(const Row& row) {
    std::map<double, int> numbers;
    const int bias = (1 << (row.exponent_bits - 1)) - 1;
    for (int pattern = 0; pattern < 1 << (row.mantissa + row.exponent_bits); ++pattern) {
        const int exponent = pattern >> row.mantissa;
        const int fraction = pattern & ((1 << row.mantissa) - 1);
        const double steps = exponent == 0 ? fraction : fraction + (1 << row.mantissa);
        const double number = std::ldexp(steps, std::max(exponent, 1) - bias - row.mantissa);
        if (number <= row.largest) numbers[number] = pattern;
    }
    return numbers;
}

TEST_CASE("every number of a format is its own pattern, and what lies between goes to the nearer one") {
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const SmallFloat* format = small_float(*dtype_named(row.name));
        REQUIRE(format != nullptr);
        CHECK(largest_number(*format) == row.largest);
        const std::map<double, int> numbers = numbers_of(row);
        const int sign = 1 << (row.mantissa + row.exponent_bits);
        for (auto at = numbers.begin(); at != numbers.end(); ++at) {
            const auto [number, pattern] = *at;
            CHECK(nearest(*format, number) == pattern);
            CHECK(nearest(*format, -number) == (pattern | sign));
            const auto next = std::next(at);
            if (next == numbers.end()) break;
            const double middle = (number + next->first) / 2;
            CHECK(nearest(*format, middle) == (pattern % 2 == 0 ? pattern : next->second));
            CHECK(nearest(*format, std::nextafter(middle, 0)) == pattern);
            CHECK(nearest(*format, std::nextafter(middle, next->first)) == next->second);
        }
    }
}

TEST_CASE("what a format does not have is nothing") {
    const double infinity = std::numeric_limits<double>::infinity();
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const SmallFloat& format = *small_float(*dtype_named(row.name));
        CHECK(nearest(format, infinity).has_value() == row.has_infinity);
        CHECK(nearest(format, -infinity).has_value() == row.has_infinity);
        CHECK(nearest(format, NAN).has_value() == row.has_nan);
        CHECK_FALSE(nearest(format, row.largest * 1.5));
        CHECK_FALSE(nearest(format, -std::numeric_limits<double>::max()));
    }
}

TEST_CASE("numbers far below the smallest are zero, with their sign") {
    const SmallFloat& format = *small_float(*dtype_named("float8_e5m2"));
    CHECK(nearest(format, std::numeric_limits<double>::denorm_min()) == 0);
    CHECK(nearest(format, -1e-300) == 0x80);
}

TEST_CASE("a scale is a power of two or NaN") {
    CHECK(small_float(*dtype_named("float8_e8m0fnu")) == nullptr);
    CHECK(to_power_of_two(1) == 127);
    CHECK(to_power_of_two(std::ldexp(1, -127)) == 0);
    CHECK(to_power_of_two(std::ldexp(1, 127)) == 254);
    CHECK(to_power_of_two(NAN) == 255);
    for (const double other :
         {0.0, 3.0, -1.0, std::ldexp(1, 128), std::ldexp(1, -128), std::numeric_limits<double>::infinity()}) {
        CHECK_FALSE(to_power_of_two(other));
    }
}

TEST_CASE("other types are no small formats") {
    for (const char* typestr : {"<f4", "<f8", "|V2", "|u1", "<c8"}) {
        CHECK(small_float(parse_typestr(typestr)) == nullptr);
    }
    CHECK(small_float(parse_typestr("<f2")) != nullptr);
}

}  // namespace
}  // namespace bascule::testing
