// "Scalars to declared types" of the conformance list. References: C++ literals, and tables of every 16-bit float.
#include <algorithm>
#include <cfenv>
#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include <bascule/interface/arguments/scalar_conversion.hpp>
#include <bascule/interface/types/small_float.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
using Kind = ArgumentError::Kind;

template <class T>
T converted(const Scalar& scalar, const Parameter& parameter) {
    T value{};
    REQUIRE(parameter.bytes == sizeof value);
    write_scalar(scalar, parameter, reinterpret_cast<std::byte*>(&value));
    return value;
}

void check_not_converted(const Scalar& scalar, const Parameter& parameter, Kind kind,
                         std::initializer_list<std::string_view> parts) {
    std::byte bytes[16] = {};
    CAPTURE(parameter.spelling);
    CAPTURE(describe(scalar));
    check_refused([&] { write_scalar(scalar, parameter, bytes); }, kind, parts);
}

TEST_CASE("what does not fit 64 bits is told of the type that holds it") {
    check_not_converted(large(std::uint64_t{1} << 63), scalar_parameter("long long", "<i8"), Kind::overflow,
                        {"`long long`", "9223372036854775808", "Declare `unsigned long long`"});
    check_not_converted(integer(-1), scalar_parameter("unsigned long long", "<u8"), Kind::overflow,
                        {"holds 0 to 18446744073709551615", "got -1", "Declare `long long`"});
}

TEST_CASE("the message of an integer out of range is a sentence with a next step") {
    const auto error = caught([] {
        std::byte bytes[4];
        write_scalar(integer(3000000000), scalar_parameter("int", "<i4"), bytes);
    });
    REQUIRE(error);
    CHECK(std::string(error->what()) ==
          "the kernel declares `int`, which holds -2147483648 to 2147483647; got 3000000000. Declare `long "
          "long`, or pass a smaller number.");
}

TEST_CASE("a finite number that narrowing would make infinite is an overflow") {
    const Parameter single = scalar_parameter("float", "<f4");
    constexpr double largest = std::numeric_limits<float>::max();
    CHECK(converted<float>(real(largest), single) == std::numeric_limits<float>::max());
    check_not_converted(real(1e39), single, Kind::overflow,
                        {"`float`", "the float 1e+39", "infinite", "wider"});
    check_not_converted(real(-1e300), single, Kind::overflow, {"`float`"});
    check_not_converted(real(65520.0), scalar_parameter("__half", "<f2"), Kind::overflow, {"`__half`"});
    check_not_converted(real(std::numeric_limits<double>::max()), bfloat16_parameter(), Kind::overflow,
                        {"`__nv_bfloat16`"});
    check_not_converted(complex(0, 1e39), scalar_parameter("C", "<c8"), Kind::overflow, {"`C`"});
}

TEST_CASE("infinities and NaN pass") {
    CHECK(converted<float>(real(-infinity), scalar_parameter("float", "<f4")) ==
          -std::numeric_limits<float>::infinity());
    CHECK(std::isnan(converted<float>(real(NAN), scalar_parameter("float", "<f4"))));
    CHECK(converted<double>(real(infinity), scalar_parameter("double", "<f8")) == infinity);
    CHECK(converted<std::uint16_t>(real(-infinity), scalar_parameter("__half", "<f2")) == 0xFC00);
    CHECK(converted<std::uint16_t>(real(infinity), bfloat16_parameter()) == 0x7F80);
    CHECK((converted<std::uint16_t>(real(NAN), bfloat16_parameter()) & 0x7FFF) > 0x7F80);
    CHECK((converted<std::uint16_t>(real(NAN), scalar_parameter("__half", "<f2")) & 0x7FFF) > 0x7C00);
}

// --- 16-bit floats. The reference decodes every pattern and finds the nearest value.

double decoded(std::uint32_t pattern, int mantissa, int bias) {
    const auto exponent = static_cast<int>(pattern >> mantissa);
    const double fraction = pattern & ((1u << mantissa) - 1);
    if (exponent == 0) return std::ldexp(fraction, 1 - bias - mantissa);
    return std::ldexp(fraction + (1u << mantissa), exponent - bias - mantissa);
}

/// The pattern of the nearest of `values`, the last of which stands for infinity; ties go to the even pattern.
std::uint16_t nearest(double value, const std::vector<double>& values) {
    const auto above = std::lower_bound(values.begin(), values.end(), value);
    if (above == values.end()) return static_cast<std::uint16_t>(values.size() - 1);
    const auto high = static_cast<std::uint16_t>(above - values.begin());
    if (high == 0 || *above == value) return high;
    const long double below_by = static_cast<long double>(value) - values[high - 1u];
    const long double above_by = static_cast<long double>(*above) - value;
    if (below_by != above_by) return below_by < above_by ? static_cast<std::uint16_t>(high - 1) : high;
    return high % 2 == 0 ? high : static_cast<std::uint16_t>(high - 1);
}

void check_rounding(std::uint16_t (*round)(double), int mantissa, int exponent_bits) {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const std::uint32_t infinite = ((1u << exponent_bits) - 1) << mantissa;
    std::vector<double> values(infinite + 1);
    for (std::uint32_t pattern = 0; pattern <= infinite; ++pattern)
        values[pattern] = decoded(pattern, mantissa, bias);

    std::size_t wrong = 0;
    const auto look_at = [&](double value) {
        if (round(value) != nearest(value, values)) ++wrong;
        if (round(-value) != (nearest(value, values) | 0x8000)) ++wrong;
    };
    for (std::uint32_t pattern = 0; pattern < infinite; ++pattern) {
        const double half_way = (values[pattern] + values[pattern + 1]) / 2;  // exact: it needs one bit more
        for (const double value : {values[pattern], half_way}) {
            look_at(value);
            look_at(std::nextafter(value, infinity));
            if (value > 0) look_at(std::nextafter(value, 0.0));
        }
    }
    std::mt19937_64 random(20240229);
    for (int i = 0; i < 100000; ++i) {
        const std::uint64_t bits = random() >> 1;
        double value = 0;
        std::memcpy(&value, &bits, sizeof value);
        if (std::isfinite(value)) look_at(value);
    }
    CHECK(wrong == 0);
    CHECK(round(std::numeric_limits<double>::denorm_min()) == 0);
    CHECK(round(std::numeric_limits<double>::max()) == infinite);
    CHECK(round(-0.0) == 0x8000);
}

std::uint16_t with_infinity(const SmallFloat& format, double value) {
    const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
    return bascule::nearest(format, value).value_or(*format.infinity | sign);
}
std::uint16_t to_half(double value) { return with_infinity(*small_float({DType::Kind::floating, 2}), value); }
std::uint16_t to_bfloat16(double value) {
    return with_infinity(*small_float({DType::Kind::opaque, 2, DType::Format::bfloat16}), value);
}

TEST_CASE("half is the nearest of all its values, ties to even") { check_rounding(to_half, 10, 5); }

TEST_CASE("bfloat16 is the nearest of all its values, ties to even") { check_rounding(to_bfloat16, 7, 8); }

TEST_CASE("the rounding mode of the thread does not change what a half is") {
    const int before = std::fegetround();
    for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
        REQUIRE(std::fesetround(mode) == 0);
        const std::uint16_t third = to_half(1.0 / 3);
        std::fesetround(before);
        CHECK(third == 0x3555);
    }
}

TEST_CASE("well-known halves and bfloat16s") {
    CHECK(to_half(1) == 0x3C00);
    CHECK(to_half(-2) == 0xC000);
    CHECK(to_half(65504) == 0x7BFF);
    CHECK(to_half(5.960464477539063e-08) == 0x0001);  // the smallest
    CHECK(to_bfloat16(1) == 0x3F80);
    CHECK(to_bfloat16(3.140625) == 0x4049);
    CHECK(to_bfloat16(3.3895313892515355e38) == 0x7F7F);  // the largest
}

TEST_CASE("scalars are shown so that a float is not taken for an integer") {
    CHECK(describe(real(2)) == "the float 2.0");
    CHECK(describe(real(0.1)) == "the float 0.1");
    CHECK(describe(real(-infinity)) == "the float -inf");
    CHECK(describe(integer(-5)) == "-5");
    CHECK(describe(large(~std::uint64_t{0})) == "18446744073709551615");
    CHECK(describe(boolean(false)) == "False");
    CHECK(describe(complex(1, -2)) == "the complex 1-2j");
}

}  // namespace
}  // namespace bascule::testing
